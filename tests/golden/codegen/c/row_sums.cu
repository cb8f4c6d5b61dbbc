extern "C" __global__ void __launch_bounds__(64) kernel_0(
    const float* __restrict__ x,
    float* __restrict__ y) {
  const int i0 = blockIdx.x;
  __shared__ __align__(16) float part[64];
  const int i1 = threadIdx.x;
  float sum[1];
  sum[0] = 0.0f;
  for (int i2 = 0; i2 < 4; ++i2) {
    if (i2 * 64 + i1 < 200) {
      sum[0] = sum[0] + x[i0 * 200 + i1 + i2 * 64];
    }
  }
  part[i1] = sum[0];
  __syncthreads();
  if (i1 < 32) {
    part[i1] = part[i1] + part[i1 + 32];
  }
  __syncthreads();
  if (i1 < 16) {
    part[i1] = part[i1] + part[i1 + 16];
  }
  __syncthreads();
  if (i1 < 8) {
    part[i1] = part[i1] + part[i1 + 8];
  }
  __syncthreads();
  if (i1 < 4) {
    part[i1] = part[i1] + part[i1 + 4];
  }
  __syncthreads();
  if (i1 < 2) {
    part[i1] = part[i1] + part[i1 + 2];
  }
  __syncthreads();
  if (i1 < 1) {
    part[i1] = part[i1] + part[i1 + 1];
  }
  __syncthreads();
  if (i1 < 1) {
    y[i0] = part[0];
  }
}
