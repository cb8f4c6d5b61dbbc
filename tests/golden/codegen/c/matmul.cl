typedef float4 f32x4;
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void kernel_0(
    __global const float* restrict a,
    __global const float* restrict b,
    __global float* restrict c) {
  const int i0 = get_group_id(0);
  const int x1 = i0 / 2;
  const int x2 = i0 % 2;
  __local float a_shared[256] __attribute__((aligned(16)));
  __local float b_shared[512] __attribute__((aligned(16)));
  const int i3 = get_local_id(0);
  float acc[8];
  #pragma unroll
  for (int i4 = 0; i4 < 2; ++i4) {
    #pragma unroll
    for (int i5 = 0; i5 < 4; ++i5) {
      acc[i4 * 4 + i5] = 0.0f;
    }
  }
  for (int i6 = 0; i6 < 4; ++i6) {
    for (int i7 = 0; i7 < 1; ++i7) {
      *(__local f32x4*)&a_shared[i3 * 4 + i7 * 256] = *(const __global f32x4*)&a[x1 * 1024 + i6 * 16 + i7 * 1024 + i3 / 4 * 64 + i3 % 4 * 4];
    }
    for (int i9 = 0; i9 < 2; ++i9) {
      *(__local f32x4*)&b_shared[i3 * 4 + i9 * 256] = *(const __global f32x4*)&b[x2 * 32 + i6 * 1024 + i9 * 512 + i3 / 8 * 64 + i3 % 8 * 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i11 = 0; i11 < 16; ++i11) {
      #pragma unroll
      for (int i12 = 0; i12 < 2; ++i12) {
        #pragma unroll
        for (int i13 = 0; i13 < 4; ++i13) {
          acc[i12 * 4 + i13] = acc[i12 * 4 + i13] + a_shared[i11 + i12 * 128 + i3 / 8 * 16] * b_shared[i11 * 32 + i13 + i3 % 8 * 4];
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int i14 = 0; i14 < 2; ++i14) {
    {
      f32x4 r_0;
      r_0.s0 = acc[i14 * 4];
      r_0.s1 = acc[i14 * 4 + 1];
      r_0.s2 = acc[i14 * 4 + 2];
      r_0.s3 = acc[i14 * 4 + 3];
      *(__global f32x4*)&c[x1 * 1024 + x2 * 32 + i14 * 512 + i3 / 8 * 64 + i3 % 8 * 4] = r_0;
    }
  }
}
