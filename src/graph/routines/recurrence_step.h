/* One step of a recurrence, in vectors of LANES floats. Included once for each instruction set,
   with LANES, TILE (sequences that are worked on together), TARGET (an attribute of its functions,
   or nothing) and NAMED(name) defined. */
#define VECTORS (PRUNER_UNITS / LANES) /* vectors of a block */
#define SUMS (4 * VECTORS * TILE)      /* vectors at most, of all gates */

typedef float NAMED(Floats) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t NAMED(Ints) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
#define Floats NAMED(Floats)
#define Ints NAMED(Ints)

#define INLINE TARGET static inline __attribute__((always_inline))

INLINE void NAMED(choose)(Floats* to, Ints mask, Floats other) {
  *to = (Floats)((mask & (Ints)other) | (~mask & (Ints)*to));
}

/* e^x - 1 for x in [-87, 88]: 2^k p + (2^k - 1) with x = k ln 2 + r and p = e^r - 1, of which
   Taylor's series has an eighth of an ulp left at |r| <= ln 2 / 2. `scale`: 2^k. */
INLINE void NAMED(expm1)(Floats x, Floats* scale, Floats* p) {
  const float kRounding = 12582912; /* 1.5 * 2^23: what is added to it is rounded to an integer */
  const Floats k = (x * 1.44269504F + kRounding) - kRounding;
  /* ln 2 in two parts, of which the first one times k is exact. */
  const Floats r = (x - k * 0.693359375F) - k * -2.12194440e-4F;
  Floats sum = r * (1.0F / 5040) + 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  *p = sum * (r * r) + r;
  const Ints exponent = __builtin_convertvector(k, Ints);
  *scale = (Floats)((exponent + 127) << 23);
}

INLINE void NAMED(clamp)(Floats* x, float low, float high) {
  const Floats zero = {0};
  NAMED(choose)(x, *x < low, zero + low); /* no number stays */
  NAMED(choose)(x, *x > high, zero + high);
}

INLINE void NAMED(sigmoid)(Floats* x) {
  Floats scale, p, to = -*x;
  NAMED(clamp)(&to, -87, 88);
  NAMED(expm1)(to, &scale, &p);
  *x = 1 / (1 + (scale + scale * p));
}

INLINE void NAMED(tanh)(Floats* x) {
  const Ints sign = (Ints)*x & INT32_MIN;
  Floats scale, p, twice = (Floats)((Ints)*x ^ sign) * 2;
  NAMED(clamp)(&twice, 0, 40); /* tanh has long been 1 there */
  NAMED(expm1)(twice, &scale, &p);
  const Floats t = scale * p + (scale - 1);
  *x = (Floats)((Ints)(t / (t + 2)) | sign);
}

INLINE void NAMED(elu)(Floats* x, float alpha) {
  Floats scale, p, low = *x;
  NAMED(clamp)(&low, -87, 0);
  NAMED(expm1)(low, &scale, &p);
  NAMED(choose)(x, *x < 0, (scale * p + (scale - 1)) * alpha);
}

INLINE void NAMED(activate)(const PrunerRecurrenceStep* s, int which, Floats* x) {
  const PrunerActivation* f = &s->p->activations[s->direction][which];
  const float alpha = (float)pruner_double_of(f->alpha_bits),
              beta = (float)pruner_double_of(f->beta_bits);
  const float clip = (float)pruner_double_of(s->p->clip_bits);
  const Floats zero = {0};
  if (clip > 0) NAMED(clamp)(x, -clip, clip);
  switch ((PrunerActivationKind)f->kind) {
    case kRecurrenceSigmoid: NAMED(sigmoid)(x); return;
    case kRecurrenceTanh: NAMED(tanh)(x); return;
    case kRecurrenceRelu: NAMED(choose)(x, *x < 0, zero); return;
    case kRecurrenceAffine: *x = *x * alpha + beta; return;
    case kRecurrenceElu: NAMED(elu)(x, alpha); return;
    case kRecurrenceHardSigmoid:
      *x = *x * alpha + beta;
      NAMED(clamp)(x, 0, 1);
      return;
    case kRecurrenceLeakyRelu: NAMED(choose)(x, *x < 0, *x * alpha); return;
    case kRecurrenceScaledTanh:
      *x = *x * beta;
      NAMED(tanh)(x);
      *x = *x * alpha;
      return;
    case kRecurrenceSoftsign: *x = *x / (1 + (Floats)((Ints)*x & INT32_MAX)); return;
    case kRecurrenceThresholdedRelu: NAMED(choose)(x, *x <= alpha, zero); return;
  }
}

/* The units of a block in a row of `hidden` of them; what lies behind its end is 0. */
INLINE void NAMED(read_units)(const float* row, int64_t block, int64_t hidden, Floats* to) {
  const int64_t first = block * PRUNER_UNITS, left = hidden - first;
  if (left >= PRUNER_UNITS) {
    for (int v = 0; v < VECTORS; v++) memcpy(&to[v], row + first + v * LANES, sizeof *to);
  } else {
    memset(to, 0, VECTORS * sizeof *to);
    memcpy(to, row + first, (size_t)left * sizeof *row);
  }
}

/* Adds h times R's gates [from, from + gates) to the sums of `count` sequences, one after the
   other. A single sequence has too few sums to hide how long an addition takes, so that it has each
   twice, for either half of h. */
INLINE void NAMED(add_products)(const PrunerRecurrenceStep* s,
                                int64_t block,
                                const float* const* h,
                                int count,
                                int from,
                                int gates,
                                Floats* sums) {
  const int each = gates * VECTORS, halves = count * each <= 4 ? 2 : 1;
  const int64_t hidden = s->p->hidden, stride = s->p->gates * PRUNER_UNITS;
  const float* w = s->weights + block * hidden * stride + from * PRUNER_UNITS;
  Floats all[2 * SUMS];
  UNROLL for (int i = 0; i < count * each; i++) {
    all[i] = sums[i];
    all[SUMS + i] = (Floats){0};
  }
  const int64_t part = hidden / halves;
  for (int64_t k = 0; k < part; k++, w += stride)
    UNROLL for (int half = 0; half < halves; half++) UNROLL for (int item = 0; item < count; item++)
        UNROLL for (int i = 0; i < each; i++) all[half * SUMS + item * each + i] +=
        *(const Floats*)(w + half * part * stride + i * LANES) * h[item][half * part + k];
  w += (halves - 1) * part * stride;
  for (int64_t k = halves * part; k < hidden; k++, w += stride)
    UNROLL for (int i = 0; i < count * each; i++) all[i] +=
        *(const Floats*)(w + i % each * LANES) * h[i / each][k];
  UNROLL for (int i = 0; i < count * each; i++) sums[i] = all[i] + all[SUMS + i];
}

INLINE void NAMED(lstm_units)(
    const PrunerRecurrenceStep* s, int64_t block, Floats* gates, float* c, float* next) {
  Floats peep[3 * VECTORS];
  for (int gate = 0; gate < 3 && s->peepholes != NULL; gate++) {
    const float* row = s->peepholes + gate * s->p->hidden;
    NAMED(read_units)(row, block, s->p->hidden, peep + gate * VECTORS);
  }
  for (int v = 0; v < VECTORS; v++) {
    Floats in = gates[v], out = gates[VECTORS + v], forget = gates[2 * VECTORS + v];
    Floats cell = gates[3 * VECTORS + v], old;
    memcpy(&old, c + v * LANES, sizeof old);
    if (s->peepholes != NULL) {
      in += peep[v] * old;
      forget += peep[2 * VECTORS + v] * old;
    }
    NAMED(activate)(s, 0, &in);
    NAMED(activate)(s, 0, &forget);
    if (s->p->is_coupled) forget = 1 - in;
    NAMED(activate)(s, 1, &cell);
    cell = forget * old + in * cell;
    memcpy(c + v * LANES, &cell, sizeof cell);
    if (s->peepholes != NULL) out += peep[VECTORS + v] * cell;
    NAMED(activate)(s, 0, &out);
    NAMED(activate)(s, 2, &cell);
    out *= cell;
    memcpy(next + v * LANES, &out, sizeof out);
  }
}

/* A GRU's h from its gates z and from the argument of the candidate. */
INLINE void NAMED(gru_units)(const PrunerRecurrenceStep* s,
                             const Floats* z,
                             const Floats* candidate,
                             const float* h,
                             float* next) {
  for (int v = 0; v < VECTORS; v++) {
    Floats old, made = candidate[v];
    memcpy(&old, h + v * LANES, sizeof old);
    NAMED(activate)(s, 1, &made);
    made = (1 - z[v]) * made + z[v] * old;
    memcpy(next + v * LANES, &made, sizeof made);
  }
}

/* A block of the states of `count` sequences of an RNN or LSTM. */
INLINE void NAMED(block)(
    const PrunerRecurrenceStep* s, const int64_t* items, int count, int gates, int64_t block) {
  const PrunerRecurrence* p = s->p;
  const int64_t hidden = p->hidden;
  const int each = gates * VECTORS;
  const float* h[TILE];
  Floats sums[SUMS];
  for (int i = 0; i < count; i++) {
    const float* x = s->products + items[i] * p->directions * gates * hidden;
    h[i] = s->h + items[i] * s->padded;
    for (int gate = 0; gate < gates; gate++)
      NAMED(read_units)(x + gate * hidden, block, hidden, sums + i * each + gate * VECTORS);
  }
  NAMED(add_products)(s, block, h, count, 0, gates, sums);
  for (int i = 0; i < count; i++) {
    const int64_t at = items[i] * s->padded + block * PRUNER_UNITS;
    if (gates == 4) {
      NAMED(lstm_units)(s, block, sums + i * each, s->c + at, s->next + at);
    } else {
      for (int v = 0; v < VECTORS; v++) NAMED(activate)(s, 0, &sums[i * each + v]);
      memcpy(s->next + at, sums + i * each, VECTORS * sizeof *sums);
    }
  }
}

/* A block of a GRU's states. */
INLINE void NAMED(gru_block)(const PrunerRecurrenceStep* s, int64_t item, int64_t block) {
  const int64_t hidden = s->p->hidden, at = item * s->padded + block * PRUNER_UNITS;
  const float* x = s->products + item * s->p->directions * 3 * hidden;
  const float* h = s->h + item * s->padded;
  const float* reset = s->reset + item * s->padded;
  Floats gates[3 * VECTORS];
  for (int gate = 0; gate < 3; gate++)
    NAMED(read_units)(x + gate * hidden, block, hidden, gates + gate * VECTORS);
  if (s->bias != NULL) {
    Floats sums[SUMS];
    for (int gate = 0; gate < 3; gate++)
      NAMED(read_units)(s->bias + gate * hidden, block, hidden, sums + gate * VECTORS);
    NAMED(add_products)(s, block, &h, 1, 0, 3, sums);
    for (int v = 0; v < 2 * VECTORS; v++) {
      gates[v] += sums[v];
      NAMED(activate)(s, 0, &gates[v]);
    }
    for (int v = 0; v < VECTORS; v++)
      gates[2 * VECTORS + v] += gates[VECTORS + v] * sums[2 * VECTORS + v];
    NAMED(gru_units)(s, gates, gates + 2 * VECTORS, s->h + at, s->next + at);
  } else if (s->phase == 0) {
    NAMED(add_products)(s, block, &h, 1, 0, 2, gates);
    for (int v = 0; v < 2 * VECTORS; v++) NAMED(activate)(s, 0, &gates[v]);
    for (int v = 0; v < VECTORS; v++) {
      Floats old;
      memcpy(&old, s->h + at + v * LANES, sizeof old);
      gates[VECTORS + v] *= old;
    }
    memcpy(s->c + at, gates, VECTORS * sizeof *gates); /* z waits there */
    memcpy(s->reset + at, gates + VECTORS, VECTORS * sizeof *gates);
  } else {
    NAMED(add_products)(s, block, &reset, 1, 2, 1, gates + 2 * VECTORS);
    memcpy(gates, s->c + at, VECTORS * sizeof *gates);
    NAMED(gru_units)(s, gates, gates + 2 * VECTORS, s->h + at, s->next + at);
  }
}

TARGET static void NAMED(units)(const PrunerRecurrenceStep* s,
                                const int64_t* items,
                                int64_t count,
                                int64_t begin,
                                int64_t end) {
  const int64_t gates = s->p->gates;
  for (int64_t block = begin; block < end; block++) {
    int64_t i = 0;
    for (; gates != 3 && i + TILE <= count; i += TILE) {
      if (gates == 4) NAMED(block)(s, items + i, TILE, 4, block);
      if (gates == 1) NAMED(block)(s, items + i, TILE, 1, block);
    }
    for (; i < count; i++) {
      if (gates == 4) NAMED(block)(s, items + i, 1, 4, block);
      if (gates == 3) NAMED(gru_block)(s, items[i], block);
      if (gates == 1) NAMED(block)(s, items + i, 1, 1, block);
    }
  }
}

#undef SUMS
#undef INLINE
#undef Floats
#undef Ints
#undef VECTORS
#undef LANES
#undef TILE
#undef TARGET
#undef NAMED
