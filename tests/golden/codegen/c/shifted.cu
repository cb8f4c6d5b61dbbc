static __device__ __forceinline__ int floor_div(int a, int b) {
  if (b == 0) return a;
  if (b == -1) return (int)(0 - (unsigned)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
struct __align__(16) f32x4 {
  float s0, s1, s2, s3;
};
extern "C" __global__ void __launch_bounds__(8) kernel_0(
    const float* __restrict__ x,
    float* __restrict__ y,
    float* __restrict__ z) {
  const int i0 = blockIdx.x;
  const int i1 = threadIdx.x;
  if ((i0 * 8 + i1) * 4 < 60) {
    {
      f32x4 r_0;
      r_0.s0 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4] : 0.1f) + 2.0f;
      r_0.s1 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4 + 1] : 0.1f) + 2.0f;
      r_0.s2 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4 + 2] : 0.1f) + 2.0f;
      r_0.s3 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4 + 3] : 0.1f) + 2.0f;
      *(f32x4*)&y[i0 * 32 + i1 * 4] = r_0;
    }
    {
      f32x4 r_1_0;
      r_1_0.s0 = x[(i0 * 8 + i1 + 14) % 15 * 4 + 1];
      r_1_0.s1 = x[(i0 * 8 + i1 + 14) % 15 * 4 + 2];
      r_1_0.s2 = x[(i0 * 8 + i1 + 14) % 15 * 4 + 3];
      r_1_0.s3 = x[(i0 * 8 + i1) % 15 * 4];
      *(f32x4*)&z[i0 * 32 + i1 * 4] = r_1_0;
    }
    {
      const f32x4 v_0 = *(const f32x4*)&z[i0 * 32 + i1 * 4];
      f32x4 r_2_0;
      r_2_0.s0 = v_0.s0 + (float)floor_div((i0 * 8 + i1) * 4 + 0 - 60, 3);
      r_2_0.s1 = v_0.s1 + (float)floor_div((i0 * 8 + i1) * 4 + 1 - 60, 3);
      r_2_0.s2 = v_0.s2 + (float)floor_div((i0 * 8 + i1) * 4 + 2 - 60, 3);
      r_2_0.s3 = v_0.s3 + (float)floor_div((i0 * 8 + i1) * 4 + 3 - 60, 3);
      *(f32x4*)&z[i0 * 32 + i1 * 4] = r_2_0;
    }
  }
}
