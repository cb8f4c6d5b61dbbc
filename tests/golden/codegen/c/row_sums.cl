__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void kernel_0(
    __global const float* restrict x,
    __global float* restrict y) {
  const int i0 = get_group_id(0);
  __local float part[64] __attribute__((aligned(16)));
  const int i1 = get_local_id(0);
  float sum[1];
  sum[0] = 0.0f;
  for (int i2 = 0; i2 < 4; ++i2) {
    if (i2 * 64 + i1 < 200) {
      sum[0] = sum[0] + x[i0 * 200 + i1 + i2 * 64];
    }
  }
  part[i1] = sum[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i1 < 32) {
    part[i1] = part[i1] + part[i1 + 32];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i1 < 16) {
    part[i1] = part[i1] + part[i1 + 16];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i1 < 8) {
    part[i1] = part[i1] + part[i1 + 8];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i1 < 4) {
    part[i1] = part[i1] + part[i1 + 4];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i1 < 2) {
    part[i1] = part[i1] + part[i1 + 2];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i1 < 1) {
    part[i1] = part[i1] + part[i1 + 1];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i1 < 1) {
    y[i0] = part[0];
  }
}
