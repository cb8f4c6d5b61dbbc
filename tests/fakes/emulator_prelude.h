// Defines what CUDA C has and C++ has not, before the kernels that nvrtc.cpp compiles for the CPU.
#pragma once

#include "kernel_object.h"
#include "space/fragment.h"

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
float erfcf(float) noexcept;
float expm1f(float) noexcept;
float log1pf(float) noexcept;
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
double erfc(double) noexcept;
double expm1(double) noexcept;
double log1p(double) noexcept;
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
void* malloc(decltype(sizeof 0)) noexcept;
void free(void*) noexcept;
}

#define threadIdx (fake_thread.threadIdx)
#define blockIdx (fake_thread.blockIdx)
#define blockDim (fake_thread.blockDim)
#define gridDim (fake_thread.gridDim)
#define __syncthreads() fake_thread.barrier(__LINE__)

// Each look at the clock is so many cycles after the one before it.
static inline long long clock64() {
  static long long cycles;
  return cycles += 1000;
}

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

// Shared memory is addressed by 32 bits: from here on.
static __attribute__((aligned(1024))) char fake_dynamic_shared[fakes::kMostSharedBytes];
static inline unsigned long long __cvta_generic_to_shared(const void* place) {
  return static_cast<unsigned long long>(static_cast<const char*>(place) - fake_dynamic_shared);
}

namespace fakes {

// -- Inline PTX: ptx.cpp makes calls of these functions of it. Operands are bits.

struct Output {
  void* place;
  template <typename T>
  explicit Output(T& variable) : place(&variable) {
    static_assert(sizeof(T) == 4);
  }
  unsigned read() const {
    unsigned bits;
    __builtin_memcpy(&bits, place, sizeof bits);
    return bits;
  }
  void write(unsigned bits) const { __builtin_memcpy(place, &bits, sizeof bits); }
};
struct Input {
  unsigned long long bits;
  explicit Input(float x) : bits(fake_bits<unsigned>(x)) {}
  explicit Input(unsigned x) : bits(x) {}
  explicit Input(int x) : bits(static_cast<unsigned>(x)) {}
  explicit Input(unsigned long long x) : bits(x) {}
  explicit Input(const void* x) : bits(reinterpret_cast<unsigned long long>(x)) {}
};
template <typename... T>
struct List {
  static constexpr int kCount = 0;
  List() = default;
};
template <typename T, typename... More>
struct List<T, More...> {
  static constexpr int kCount = 1 + sizeof...(More);
  T items[kCount];
  explicit List(T first, More... more) : items{first, more...} {}
};
template <typename... T>
List(T...) -> List<T...>;

// Elements of a register, by the names of PTX: `kRun` side by side.
struct of_f32 {
  static constexpr int kRun = 1;
  static double get(unsigned word, int) { return fake_bits<float>(word); }
  static unsigned set(double x) { return fake_bits<unsigned>(static_cast<float>(x)); }
};
struct of_tf32 : of_f32 {  // the other bits are not looked at
  static double get(unsigned word, int i) { return of_f32::get(word >> 13 << 13, i); }
};
struct of_s32 {
  static constexpr int kRun = 1;
  static double get(unsigned word, int) { return static_cast<int>(word); }
  static unsigned set(double x) { return static_cast<unsigned>(static_cast<long long>(x)); }
};
#ifdef __FLT16_MANT_DIG__
struct of_f16 {
  static constexpr int kRun = 2;
  static double get(unsigned word, int i) {
    return fake_half_to_float(static_cast<unsigned short>(word >> (16 * i)));
  }
  static unsigned set(double x) { return fake_float_to_half(static_cast<float>(x)); }
};
#endif
struct of_bf16 {
  static constexpr int kRun = 2;
  static double get(unsigned word, int i) { return of_f32::get(word >> (16 * i) << 16, 0); }
};
struct of_s8 {
  static constexpr int kRun = 4;
  static double get(unsigned word, int i) { return static_cast<signed char>(word >> (8 * i)); }
};
struct of_u8 {
  static constexpr int kRun = 4;
  static double get(unsigned word, int i) { return static_cast<unsigned char>(word >> (8 * i)); }
};

static inline int lane() { return static_cast<int>(threadIdx.x % pruner::kWarpLanes); }
static double fake_a[16 * 32], fake_b[8 * 32];  // the matrices of the warp that is at one

template <typename T>
static inline void give(double* matrix, const pruner::Fragment& f, const Input* words) {
  for (int v = 0; v < f.elements(); ++v)
    matrix[f.row(lane(), v) * f.cols + f.col(lane(), v)] =
        T::get(static_cast<unsigned>(words[v / T::kRun].bits), v % T::kRun);
}

template <int kM, int kN, int kK, typename Sum, typename A, typename B, typename Out, typename In>
static inline void mma(const Out& out, const In& in) {
  constexpr pruner::Fragment a{kM, kK, A::kRun}, b{kN, kK, B::kRun}, sum{kM, kN, 2};
  static_assert(Out::kCount == sum.elements() / Sum::kRun);
  static_assert(In::kCount == a.elements() / A::kRun + b.elements() / B::kRun);
  give<A>(fake_a, a, in.items);
  give<B>(fake_b, b, in.items + a.elements() / A::kRun);
  fake_thread.meet(__LINE__);
  for (int word = 0; word < Out::kCount; ++word) {
    unsigned made = 0;
    for (int i = 0; i < Sum::kRun; ++i) {
      const int v = word * Sum::kRun + i;
      double total = Sum::get(out.items[word].read(), i);
      for (int k = 0; k < kK; ++k)
        total += fake_a[sum.row(lane(), v) * kK + k] * fake_b[sum.col(lane(), v) * kK + k];
      made |= Sum::set(total) << (i * 32 / Sum::kRun);
    }
    out.items[word].write(made);
  }
  fake_thread.meet(__LINE__);  // before the matrices are others
}

static const char* fake_rows[pruner::kWarpLanes];

template <bool kTransposed, typename Out, typename In>
static inline void load_matrix(const Out& out, const In& in) {
  fake_rows[lane()] = fake_dynamic_shared + static_cast<int>(in.items[0].bits);
  fake_thread.meet(__LINE__);
  constexpr pruner::Fragment f = pruner::matrix_fragment(2);
  for (int i = 0; i < Out::kCount; ++i) {
    unsigned word = 0;
    for (int v = 0; v < 2; ++v) {
      const int row = f.row(lane(), v), col = f.col(lane(), v);
      unsigned short element;
      __builtin_memcpy(&element,
                       fake_rows[8 * i + (kTransposed ? col : row)] + 2 * (kTransposed ? row : col),
                       sizeof element);
      word |= static_cast<unsigned>(element) << (16 * v);
    }
    out.items[i].write(word);
  }
  fake_thread.meet(__LINE__);
}

static unsigned fake_words[pruner::kWarpLanes];

template <int kDistance, typename Out, typename In>
static inline void exchange(const Out& out, const In& in) {
  fake_words[lane()] = static_cast<unsigned>(in.items[0].bits);
  fake_thread.meet(__LINE__);
  out.items[0].write(fake_words[lane() ^ kDistance]);
  fake_thread.meet(__LINE__);
}

template <int kBytes, typename Out, typename In>
static inline void async_copy(const Out&, const In& in) {
  fake_thread.copy(fake_dynamic_shared + static_cast<int>(in.items[0].bits),
                   reinterpret_cast<const void*>(in.items[1].bits),
                   kBytes,
                   static_cast<unsigned>(in.items[2].bits));
}
template <typename Out, typename In>
static inline void commit_copies(const Out&, const In&) {
  fake_thread.commit();
}
template <int kGroups, typename Out, typename In>
static inline void wait_for_copies(const Out&, const In&) {
  fake_thread.wait(kGroups);
}
// -- Products of groups of four warps (wgmma). They are computed when their thread waits for them,
// from what is in shared memory then.

struct Product {
  void (*add)(const Product&);  // null: ends what one commit made a group of
  Product* next;
  unsigned long long a, b;  // matrix descriptors
  unsigned held[8];         // the first matrix, if it lies in registers
  void* sums[128];          // registers
};
static Product *first_product[1024], *last_product[1024];  // queues, one a thread

static inline Product* new_product() {
  auto* const product = static_cast<Product*>(malloc(sizeof(Product)));
  product->add = nullptr;
  product->next = nullptr;
  Product*& last = last_product[threadIdx.x];
  (last == nullptr ? first_product[threadIdx.x] : last->next) = product;
  last = product;
  return product;
}

// Returns an element of a matrix that a descriptor (PTX: matrix descriptor) describes. The hardware
// exchanges bits of the address itself.
template <typename T, bool kTransposed>
static inline double element_of(unsigned long long descriptor, int row, int term) {
  constexpr int kBytes = 4 / T::kRun;
  const unsigned leading = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff)
                                                                      << 4;
  const auto mode = static_cast<unsigned>(descriptor >> 62);
  const unsigned width = mode == 0 ? 16 : 256u >> mode;  // 1: 128 bytes, 2: 64, 3: 32
  unsigned address = static_cast<unsigned>(descriptor & 0x3fff) << 4;
  if (mode == 0) {
    if (!kTransposed) return __builtin_nan("");  // nobody has such terms
    address += row / 8 * stride + term / 8 * leading + term % 8 * width + row % 8 * kBytes;
  } else if (kTransposed) {
    const unsigned columns = width / kBytes;
    address +=
        row / columns * leading + term / 8 * stride + term % 8 * width + row % columns * kBytes;
  } else {
    address += row / 8 * stride + row % 8 * width + term * kBytes;
  }
  address ^= (address >> 7 & (width / 16 - 1)) << 4;
  unsigned word = 0;
  __builtin_memcpy(&word, fake_dynamic_shared + address, kBytes);
  return T::get(word, 0);
}

template <int kN,
          int kK,
          typename Sum,
          typename A,
          typename B,
          bool kTransposedA,
          bool kTransposedB>
static inline void add_product(const Product& product) {
  constexpr pruner::Fragment sum{16, kN, 2};
  const int first_row = static_cast<int>(threadIdx.x / pruner::kWarpLanes % 4) * 16;
  for (int word = 0; word < sum.elements() / Sum::kRun; ++word) {
    unsigned made = 0, old;
    __builtin_memcpy(&old, product.sums[word], sizeof old);
    for (int i = 0; i < Sum::kRun; ++i) {
      const int v = word * Sum::kRun + i;
      double total = Sum::get(old, i);
      for (int k = 0; k < kK; ++k)
        total += element_of<A, kTransposedA>(product.a, first_row + sum.row(lane(), v), k) *
                 element_of<B, kTransposedB>(product.b, sum.col(lane(), v), k);
      made |= Sum::set(total) << (i * 32 / Sum::kRun);
    }
    __builtin_memcpy(product.sums[word], &made, sizeof made);
  }
}

// The same with the first matrix in registers, as each lane holds its part of it.
template <int kN, int kK, typename Sum, typename A, typename B, bool kTransposedB>
static inline void add_held_product(const Product& product) {
  constexpr pruner::Fragment sum{16, kN, 2}, a{16, kK, A::kRun};
  static double rows[1024 / 32][16 * kK];  // factors, a warp each
  double* const mine = rows[threadIdx.x / pruner::kWarpLanes];
  for (int v = 0; v < a.elements(); ++v)
    mine[a.row(lane(), v) * kK + a.col(lane(), v)] = A::get(product.held[v / A::kRun], v % A::kRun);
  fake_thread.meet(__LINE__);
  for (int word = 0; word < sum.elements() / Sum::kRun; ++word) {
    unsigned made = 0, old;
    __builtin_memcpy(&old, product.sums[word], sizeof old);
    for (int i = 0; i < Sum::kRun; ++i) {
      const int v = word * Sum::kRun + i;
      double total = Sum::get(old, i);
      for (int k = 0; k < kK; ++k)
        total += mine[sum.row(lane(), v) * kK + k] *
                 element_of<B, kTransposedB>(product.b, sum.col(lane(), v), k);
      made |= Sum::set(total) << (i * 32 / Sum::kRun);
    }
    __builtin_memcpy(product.sums[word], &made, sizeof made);
  }
  fake_thread.meet(__LINE__);  // before the rows are others
}

template <int kN,
          int kK,
          typename Sum,
          typename A,
          typename B,
          bool kTransposedB,
          typename Out,
          typename In>
static inline void held_group_mma(const Out& out, const In& in) {
  constexpr int kWords = pruner::Fragment{16, kK, A::kRun}.elements() / A::kRun;
  static_assert(Out::kCount == pruner::Fragment{16, kN, 2}.elements() / Sum::kRun);
  static_assert(In::kCount == kWords + 1);
  fake_thread.meet(__LINE__);
  Product* const product = new_product();
  product->add = add_held_product<kN, kK, Sum, A, B, kTransposedB>;
  for (int i = 0; i < kWords; ++i) product->held[i] = static_cast<unsigned>(in.items[i].bits);
  product->b = in.items[kWords].bits;
  for (int i = 0; i < Out::kCount; ++i) product->sums[i] = out.items[i].place;
}

template <int kN,
          int kK,
          typename Sum,
          typename A,
          typename B,
          bool kTransposedA,
          bool kTransposedB,
          typename Out,
          typename In>
static inline void group_mma(const Out& out, const In& in) {
  static_assert(Out::kCount == pruner::Fragment{16, kN, 2}.elements() / Sum::kRun);
  static_assert(In::kCount == 2);
  fake_thread.meet(__LINE__);
  Product* const product = new_product();
  product->add = add_product<kN, kK, Sum, A, B, kTransposedA, kTransposedB>;
  product->a = in.items[0].bits;
  product->b = in.items[1].bits;
  for (int i = 0; i < Out::kCount; ++i) product->sums[i] = out.items[i].place;
}
template <typename Out, typename In>
static inline void commit_products(const Out&, const In&) {
  fake_thread.meet(__LINE__);
  new_product();
}
template <int kCommits, typename Out, typename In>
static inline void wait_for_products(const Out&, const In&) {
  fake_thread.meet(__LINE__);
  Product*& first = first_product[threadIdx.x];
  int left = 0;
  for (const Product* p = first; p != nullptr; p = p->next) left += p->add == nullptr;
  while (left > kCommits) {
    Product* const product = first;
    product->add == nullptr ? (void)--left : product->add(*product);
    first = product->next;
    if (first == nullptr) last_product[threadIdx.x] = nullptr;
    free(product);
  }
}
// What compilers and memory are told to keep in order, they do.
template <typename Out, typename In>
static inline void keep_order(const Out&, const In&) {}

template <typename Out, typename In>
static inline void to_tf32(const Out& out, const In& in) {
  out.items[0].write((static_cast<unsigned>(in.items[0].bits) + 0x1000) >> 13 << 13);
}

// -- Kernels.

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
      __stop_fake_shared_##name,                                                        \
      fake_dynamic_shared};                                                             \
  }
