static __device__ __forceinline__ long long floor_mod64(long long a, long long b) {
  if (b == 0 || b == -1) return 0;
  const long long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
struct __align__(4) f16x2 {
  unsigned short s0, s1;
};
extern "C" __global__ void __launch_bounds__(4) kernel_0(
    const unsigned short* __restrict__ table,
    const long long* __restrict__ index,
    unsigned short* __restrict__ y,
    unsigned char* __restrict__ odd,
    int* __restrict__ twice,
    signed char* __restrict__ bytes) {
  const int i0 = blockIdx.x;
  const int i1 = threadIdx.x;
  *(f16x2*)&y[i0 * 8 + i1 * 2] = *(const f16x2*)&table[(long long)i1 * 2LL + index[i0] * 8LL];
  if (i1 < 1) {
    odd[i0] = floor_mod64(index[i0], 2LL) == 1LL;
    twice[i0] = (int)(index[i0] * 2LL - 7LL);
    bytes[i0] = (signed char)(index[i0] * 40LL);
  }
}
