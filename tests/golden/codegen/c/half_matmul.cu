static __device__ __forceinline__ float half_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
static __device__ __forceinline__ unsigned short float_to_half(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
struct __align__(16) f16x8 {
  unsigned short s0, s1, s2, s3, s4, s5, s6, s7;
};
struct __align__(8) f16x4 {
  unsigned short s0, s1, s2, s3;
};
extern "C" __global__ void __launch_bounds__(64) kernel_0(
    const unsigned short* __restrict__ a,
    const unsigned short* __restrict__ b,
    unsigned short* __restrict__ c) {
  const int i0 = blockIdx.x;
  const int x1 = i0 / 2;
  const int x2 = i0 % 2;
  __shared__ __align__(16) unsigned short a_shared[512];
  __shared__ __align__(16) unsigned short b_shared[512];
  const int i3 = threadIdx.x;
  float acc[16];
  #pragma unroll
  for (int i4 = 0; i4 < 4; ++i4) {
    #pragma unroll
    for (int i5 = 0; i5 < 4; ++i5) {
      acc[i4 * 4 + i5] = 0.0f;
    }
  }
  for (int i6 = 0; i6 < 4; ++i6) {
    for (int i7 = 0; i7 < 1; ++i7) {
      *(f16x8*)&a_shared[i3 * 8 + i7 * 512] = *(const f16x8*)&a[x1 * 2048 + i6 * 16 + i7 * 2048 + i3 / 2 * 64 + i3 % 2 * 8];
    }
    for (int i9 = 0; i9 < 1; ++i9) {
      *(f16x8*)&b_shared[i3 * 8 + i9 * 512] = *(const f16x8*)&b[x2 * 32 + i6 * 1024 + i9 * 1024 + i3 / 4 * 64 + i3 % 4 * 8];
    }
    __syncthreads();
    #pragma unroll 8
    for (int i11 = 0; i11 < 16; ++i11) {
      #pragma unroll
      for (int i12 = 0; i12 < 4; ++i12) {
        #pragma unroll
        for (int i13 = 0; i13 < 4; ++i13) {
          acc[i12 * 4 + i13] = acc[i12 * 4 + i13] + half_to_float(a_shared[i11 + i12 * 128 + i3 / 8 * 16]) * half_to_float(b_shared[i11 * 32 + i13 + i3 % 8 * 4]);
        }
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int i14 = 0; i14 < 4; ++i14) {
    {
      f16x4 r_0;
      r_0.s0 = float_to_half(acc[i14 * 4]);
      r_0.s1 = float_to_half(acc[i14 * 4 + 1]);
      r_0.s2 = float_to_half(acc[i14 * 4 + 2]);
      r_0.s3 = float_to_half(acc[i14 * 4 + 3]);
      *(f16x4*)&c[x1 * 2048 + x2 * 32 + i14 * 512 + i3 / 8 * 64 + i3 % 8 * 4] = r_0;
    }
  }
}
