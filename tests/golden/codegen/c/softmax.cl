static inline float max_of(float a, float b) { return a < b || b != b ? b : a; }
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel_0(
    __global const float* restrict x,
    __global uchar* workspace) {
  __global float* const top = (__global float*)(workspace + 0);
  __global float* const total = (__global float*)(workspace + 64);
  const int i0 = get_group_id(0);
  const int i1 = get_local_id(0);
  if (i0 * 32 + i1 < 10) {
    top[i0 * 32 + i1] = x[i0 * 1056 + i1 * 33];
    for (int i2 = 0; i2 < 33; ++i2) {
      top[i0 * 32 + i1] = max_of(top[i0 * 32 + i1], x[i0 * 1056 + i1 * 33 + i2]);
    }
    total[i0 * 32 + i1] = 0.0f;
    for (int i3 = 0; i3 < 33; ++i3) {
      total[i0 * 32 + i1] = total[i0 * 32 + i1] + exp(x[i0 * 1056 + i1 * 33 + i3] - top[i0 * 32 + i1]);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel_1(
    __global const float* restrict x,
    __global float* restrict y,
    __global uchar* workspace) {
  __global float* const top = (__global float*)(workspace + 0);
  __global float* const total = (__global float*)(workspace + 64);
  const int i4 = get_group_id(0);
  const int i5 = get_local_id(0);
  for (int i6 = 0; i6 < 2; ++i6) {
    if (i6 * 32 + i5 < 33) {
      y[i4 * 33 + i5 + i6 * 32] = exp(x[i4 * 33 + i5 + i6 * 32] - top[i4]) / total[i4];
    }
  }
}
