/* Elements are read and written as bytes, by the row of their type. */
#include "graph/routines/elements.h"

#include <string.h>

enum { kFloat, kInt, kUInt, kBool, kCode };

#define ROW(abi, cpp, text, kind, bits, fraction, onnx, numpy) {kind, ((bits) + 7) / 8, fraction},
static const struct { int kind, bytes, fraction; } types[] = {PRUNER_DTYPES(ROW)};
#undef ROW

int64_t pruner_element_bytes(int64_t dtype) { return types[dtype].bytes; }

static uint64_t bits_of(const void* data, int64_t bytes, int64_t i) {
  const char* at = (const char*)data + i * bytes;
  uint64_t bits = 0;
  memcpy(&bits, at, (size_t)bytes); /* little endian */
  return bits;
}

void pruner_set_int(void* data, int64_t dtype, int64_t i, int64_t value) {
  const int bytes = types[dtype].bytes;
  if (types[dtype].kind == kBool) value = value != 0;
  memcpy((char*)data + i * bytes, &value, (size_t)bytes);
}

int64_t pruner_get_int(const void* data, int64_t dtype, int64_t i) {
  const int unused = 64 - 8 * types[dtype].bytes;
  const uint64_t bits = bits_of(data, types[dtype].bytes, i) << unused;
  return types[dtype].kind == kInt ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

/* A float of 16 bits with `fraction` of them behind the point, as float32. */
static float from_16_bits(uint32_t bits, int fraction) {
  const uint32_t sign = (bits & 0x8000) << 16;
  const int exponent_bits = 15 - fraction;
  const uint32_t top = (1U << exponent_bits) - 1, bias = top >> 1;
  uint32_t exponent = (bits & 0x7fff) >> fraction;
  uint32_t rest = (bits & ((1U << fraction) - 1)) << (23 - fraction);
  if (exponent == top) {
    exponent = 255;
  } else if (exponent != 0) {
    exponent += 127 - bias;
  } else if (rest != 0 && bias != 127) { /* a subnormal number is a normal one of float32 */
    exponent = 128 - bias;
    for (; (rest & 0x800000) == 0; rest <<= 1) exponent--;
    rest &= 0x7fffff;
  }
  const uint32_t whole = sign | exponent << 23 | rest;
  float value;
  memcpy(&value, &whole, sizeof value);
  return value;
}

/* Rounded to nearest, halves to even. */
static uint32_t to_16_bits(float value, int fraction) {
  uint32_t whole;
  memcpy(&whole, &value, sizeof whole);
  const uint32_t sign = whole >> 16 & 0x8000, size = whole & 0x7fffffff;
  const int exponent_bits = 15 - fraction;
  const uint32_t top = (1U << exponent_bits) - 1, bias = top >> 1;
  const uint32_t infinity = top << fraction;
  if (size > 0x7f800000) return sign | infinity | 1U << (fraction - 1); /* NaN */
  int drop = 23 - fraction;
  uint32_t kept = size & 0x7fffff;
  int32_t exponent = (int32_t)(size >> 23) - 127 + (int32_t)bias;
  if (size >> 23 == 0 && bias != 127) return sign; /* less than half the least */
  if (size >> 23 != 0 && exponent <= 0) {          /* becomes subnormal */
    drop += 1 - exponent;
    kept |= 0x800000;
    exponent = 0;
    if (drop > 24) return sign;
  }
  uint32_t result = ((uint32_t)(exponent < 0 ? 0 : exponent) << fraction) + (kept >> drop);
  const uint32_t half = 1U << (drop - 1), rest = kept & ((1U << drop) - 1);
  if (rest > half || (rest == half && (result & 1) != 0)) result++;
  return sign | (result < infinity ? result : infinity);
}

double pruner_get_real(const void* data, int64_t dtype, int64_t i) {
  if (types[dtype].bytes == 8) return ((const double*)data)[i];
  if (types[dtype].bytes == 4) return ((const float*)data)[i];
  return from_16_bits(((const uint16_t*)data)[i], types[dtype].fraction);
}

void pruner_set_real(void* data, int64_t dtype, int64_t i, double value) {
  if (types[dtype].bytes == 8) {
    ((double*)data)[i] = value;
  } else if (types[dtype].bytes == 4) {
    ((float*)data)[i] = (float)value;
  } else {
    ((uint16_t*)data)[i] = (uint16_t)to_16_bits((float)value, types[dtype].fraction);
  }
}

uint64_t pruner_order_key(const void* data, int64_t dtype, int64_t i, int descending) {
  const int bytes = types[dtype].bytes, kind = types[dtype].kind;
  const uint64_t bits = bits_of(data, bytes, i), sign = UINT64_C(1) << (8 * bytes - 1);
  uint64_t key = bits;
  if (kind == kInt) key = bits ^ sign;
  if (kind == kFloat) {
    const uint64_t size = bits & (sign - 1);
    const uint64_t fraction = (UINT64_C(1) << types[dtype].fraction) - 1;
    key = (bits & sign) != 0 ? sign - size : sign + size;
    if (size > ((sign - 1) & ~fraction)) key = PRUNER_KEY_OF_NAN; /* no number's key */
  }
  return descending ? key : ~key;
}

static uint64_t combined_unsigned(uint64_t a, uint64_t b, int64_t update) {
  switch (update) {
    case kAdd: return a + b;
    case kMultiply: return a * b;
    case kLarger: return a > b ? a : b;
    default: return a < b ? a : b;
  }
}

static int64_t combined_int(int64_t a, int64_t b, int64_t update) {
  switch (update) {
    case kAdd: return (int64_t)((uint64_t)a + (uint64_t)b);
    case kMultiply: return (int64_t)((uint64_t)a * (uint64_t)b);
    case kLarger: return a > b ? a : b;
    default: return a < b ? a : b;
  }
}

/* The greater or less of a NaN and a number is the NaN. */
static double combined_real(double a, double b, int64_t update) {
  switch (update) {
    case kAdd: return a + b;
    case kMultiply: return a * b;
    case kLarger: return a > b || a != a ? a : b;
    default: return a < b || a != a ? a : b;
  }
}

void pruner_update(
    void* to, int64_t at, const void* updates, int64_t from, int64_t dtype, int64_t update) {
  const int bytes = types[dtype].bytes, kind = types[dtype].kind;
  if (update == kReplace) {
    memcpy((char*)to + at * bytes, (const char*)updates + from * bytes, (size_t)bytes);
  } else if (kind == kFloat) {
    const double a = pruner_get_real(to, dtype, at), b = pruner_get_real(updates, dtype, from);
    pruner_set_real(to, dtype, at, combined_real(a, b, update));
  } else {
    const int64_t a = pruner_get_int(to, dtype, at), b = pruner_get_int(updates, dtype, from);
    const int64_t both = kind == kUInt
                             ? (int64_t)combined_unsigned((uint64_t)a, (uint64_t)b, update)
                             : combined_int(a, b, update);
    pruner_set_int(to, dtype, at, both);
  }
}
