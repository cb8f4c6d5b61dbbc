static inline int floor_div(int a, int b) {
  if (b == 0) return a;
  if (b == -1) return (int)(0 - (unsigned)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
typedef float4 f32x4;
__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void kernel_0(
    __global const float* restrict x,
    __global float* restrict y,
    __global float* restrict z) {
  const int i0 = get_group_id(0);
  const int i1 = get_local_id(0);
  if ((i0 * 8 + i1) * 4 < 60) {
    {
      f32x4 r_0;
      r_0.s0 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4] : 0.1f) + 2.0f;
      r_0.s1 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4 + 1] : 0.1f) + 2.0f;
      r_0.s2 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4 + 2] : 0.1f) + 2.0f;
      r_0.s3 = ((i0 * 8 + i1) * 4 >= 8 ? x[i0 * 32 + i1 * 4 + 3] : 0.1f) + 2.0f;
      *(__global f32x4*)&y[i0 * 32 + i1 * 4] = r_0;
    }
    {
      f32x4 r_1_0;
      r_1_0.s0 = x[(i0 * 8 + i1 + 14) % 15 * 4 + 1];
      r_1_0.s1 = x[(i0 * 8 + i1 + 14) % 15 * 4 + 2];
      r_1_0.s2 = x[(i0 * 8 + i1 + 14) % 15 * 4 + 3];
      r_1_0.s3 = x[(i0 * 8 + i1) % 15 * 4];
      *(__global f32x4*)&z[i0 * 32 + i1 * 4] = r_1_0;
    }
    {
      const f32x4 v_0 = *(const __global f32x4*)&z[i0 * 32 + i1 * 4];
      f32x4 r_2_0;
      r_2_0.s0 = v_0.s0 + (float)floor_div((i0 * 8 + i1) * 4 + 0 - 60, 3);
      r_2_0.s1 = v_0.s1 + (float)floor_div((i0 * 8 + i1) * 4 + 1 - 60, 3);
      r_2_0.s2 = v_0.s2 + (float)floor_div((i0 * 8 + i1) * 4 + 2 - 60, 3);
      r_2_0.s3 = v_0.s3 + (float)floor_div((i0 * 8 + i1) * 4 + 3 - 60, 3);
      *(__global f32x4*)&z[i0 * 32 + i1 * 4] = r_2_0;
    }
  }
}
