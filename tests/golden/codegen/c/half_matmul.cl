static inline float half_to_float(ushort bits) {
  return vload_half(0, (const __private half*)&bits);
}
static inline ushort float_to_half(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (__private half*)&bits);
  return bits;
}
typedef ushort4 f16x4;
typedef ushort8 f16x8;
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void kernel_0(
    __global const ushort* restrict a,
    __global const ushort* restrict b,
    __global ushort* restrict c) {
  const int i0 = get_group_id(0);
  const int x1 = i0 / 2;
  const int x2 = i0 % 2;
  __local ushort a_shared[512] __attribute__((aligned(16)));
  __local ushort b_shared[512] __attribute__((aligned(16)));
  const int i3 = get_local_id(0);
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
      *(__local f16x8*)&a_shared[i3 * 8 + i7 * 512] = *(const __global f16x8*)&a[x1 * 2048 + i6 * 16 + i7 * 2048 + i3 / 2 * 64 + i3 % 2 * 8];
    }
    for (int i9 = 0; i9 < 1; ++i9) {
      *(__local f16x8*)&b_shared[i3 * 8 + i9 * 512] = *(const __global f16x8*)&b[x2 * 32 + i6 * 1024 + i9 * 1024 + i3 / 4 * 64 + i3 % 4 * 8];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int i14 = 0; i14 < 4; ++i14) {
    {
      f16x4 r_0;
      r_0.s0 = float_to_half(acc[i14 * 4]);
      r_0.s1 = float_to_half(acc[i14 * 4 + 1]);
      r_0.s2 = float_to_half(acc[i14 * 4 + 2]);
      r_0.s3 = float_to_half(acc[i14 * 4 + 3]);
      *(__global f16x4*)&c[x1 * 2048 + x2 * 32 + i14 * 512 + i3 / 8 * 64 + i3 % 8 * 4] = r_0;
    }
  }
}
