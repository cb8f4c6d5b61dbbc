// What CUDA C has and C++ has not: stands before the kernels that nvrtc.cpp compiles for the CPU.
#pragma once

#include "kernel_object.h"

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

extern "C" {
__attribute__((visibility("default"))) fakes::ThreadPlace fake_thread;

float expf(float) noexcept;
float exp2f(float) noexcept;
float logf(float) noexcept;
float log2f(float) noexcept;
float sqrtf(float) noexcept;
float tanhf(float) noexcept;
float erff(float) noexcept;
float powf(float, float) noexcept;
float fabsf(float) noexcept;
float floorf(float) noexcept;
float ceilf(float) noexcept;
float rintf(float) noexcept;
float sinf(float) noexcept;
float cosf(float) noexcept;
float fmaf(float, float, float) noexcept;
float fminf(float, float) noexcept;
float fmaxf(float, float) noexcept;
float tanf(float) noexcept;
float asinf(float) noexcept;
float acosf(float) noexcept;
float atanf(float) noexcept;
float sinhf(float) noexcept;
float coshf(float) noexcept;
float asinhf(float) noexcept;
float acoshf(float) noexcept;
float atanhf(float) noexcept;
float fmodf(float, float) noexcept;
double exp(double) noexcept;
double exp2(double) noexcept;
double log(double) noexcept;
double log2(double) noexcept;
double sqrt(double) noexcept;
double tanh(double) noexcept;
double erf(double) noexcept;
double fabs(double) noexcept;
double floor(double) noexcept;
double ceil(double) noexcept;
double rint(double) noexcept;
double sin(double) noexcept;
double cos(double) noexcept;
double tan(double) noexcept;
double asin(double) noexcept;
double acos(double) noexcept;
double atan(double) noexcept;
double sinh(double) noexcept;
double cosh(double) noexcept;
double asinh(double) noexcept;
double acosh(double) noexcept;
double atanh(double) noexcept;
double pow(double, double) noexcept;
double fma(double, double, double) noexcept;
double fmin(double, double) noexcept;
double fmax(double, double) noexcept;
double fmod(double, double) noexcept;
int abs(int) noexcept;
}

#define threadIdx (fake_thread.threadIdx)
#define blockIdx (fake_thread.blockIdx)
#define blockDim (fake_thread.blockDim)
#define gridDim (fake_thread.gridDim)
#define __syncthreads() fake_thread.barrier(__LINE__)

struct __align__(8) float2 {
  float x, y;
};
struct __align__(16) float4 {
  float x, y, z, w;
};
struct __align__(8) int2 {
  int x, y;
};
struct __align__(16) int4 {
  int x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline int min(int a, int b) { return b < a ? b : a; }
static inline int max(int a, int b) { return a < b ? b : a; }
static inline long long min(long long a, long long b) { return b < a ? b : a; }
static inline long long max(long long a, long long b) { return a < b ? b : a; }
static inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
static inline unsigned long long min(unsigned long long a, unsigned long long b) {
  return b < a ? b : a;
}
static inline unsigned long long max(unsigned long long a, unsigned long long b) {
  return a < b ? b : a;
}

template <typename To, typename From>
static inline To fake_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __int_as_float(int bits) { return fake_bits<float>(bits); }
static inline int __float_as_int(float x) { return fake_bits<int>(x); }
static inline double __longlong_as_double(long long bits) { return fake_bits<double>(bits); }
static inline long long __double_as_longlong(double x) { return fake_bits<long long>(x); }
#ifdef __FLT16_MANT_DIG__
// In the place of PTX's cvt, which nvrtc.cpp knows by its text.
static inline float fake_half_to_float(unsigned short bits) { return fake_bits<_Float16>(bits); }
static inline unsigned short fake_float_to_half(float x) {
  return fake_bits<unsigned short>(static_cast<_Float16>(x));
}
#endif

namespace fakes {

template <typename T>
inline constexpr bool kIsPointer = false;
template <typename T>
inline constexpr bool kIsPointer<T*> = true;
template <typename T>
inline constexpr bool kIsPointer<T* __restrict__> = true;

template <int... I>
struct Indices {
  using type = Indices;
};
template <int kCount, int... I>
struct FirstIndices : FirstIndices<kCount - 1, kCount - 1, I...> {};
template <int... I>
struct FirstIndices<0, I...> : Indices<I...> {};

template <auto kKernel>
struct KernelOf;
template <typename... Args, void (*kKernel)(Args...)>
struct KernelOf<kKernel> {
  static constexpr unsigned kBytes[] = {sizeof(Args)..., 0};
  static constexpr bool kPointers[] = {kIsPointer<Args>..., false};

  template <int... I>
  static void call(void** arguments, Indices<I...>) {
    kKernel(*static_cast<Args*>(arguments[I])...);
  }
  static void run(void** arguments) {
    call(arguments, typename FirstIndices<sizeof...(Args)>::type());
  }
};

}  // namespace fakes

// After the kernels, one line for each.
#define FAKE_KERNEL(name, threads)                                                      \
  extern "C" {                                                                          \
  extern char __start_fake_shared_##name[] __attribute__((weak, visibility("hidden"))); \
  extern char __stop_fake_shared_##name[] __attribute__((weak, visibility("hidden")));  \
  __attribute__((visibility("default"))) fakes::KernelTable fake_kernel_##name = {      \
      fakes::KernelOf<name>::run,                                                       \
      sizeof fakes::KernelOf<name>::kBytes / sizeof(unsigned) - 1,                      \
      fakes::KernelOf<name>::kBytes,                                                    \
      fakes::KernelOf<name>::kPointers,                                                 \
      threads,                                                                          \
      __start_fake_shared_##name,                                                       \
      __stop_fake_shared_##name};                                                       \
  }
