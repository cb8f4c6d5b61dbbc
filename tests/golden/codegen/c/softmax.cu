static __device__ __forceinline__ float max_of(float a, float b) { return a < b || b != b ? b : a; }
extern "C" __global__ void __launch_bounds__(32) kernel_0(
    const float* __restrict__ x,
    unsigned char* workspace) {
  float* const top = (float*)(workspace + 0);
  float* const total = (float*)(workspace + 64);
  const int i0 = blockIdx.x;
  const int i1 = threadIdx.x;
  if (i0 * 32 + i1 < 10) {
    top[i0 * 32 + i1] = x[i0 * 1056 + i1 * 33];
    for (int i2 = 0; i2 < 33; ++i2) {
      top[i0 * 32 + i1] = max_of(top[i0 * 32 + i1], x[i0 * 1056 + i1 * 33 + i2]);
    }
    total[i0 * 32 + i1] = 0.0f;
    for (int i3 = 0; i3 < 33; ++i3) {
      total[i0 * 32 + i1] = total[i0 * 32 + i1] + expf(x[i0 * 1056 + i1 * 33 + i3] - top[i0 * 32 + i1]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(32) kernel_1(
    const float* __restrict__ x,
    float* __restrict__ y,
    unsigned char* workspace) {
  float* const top = (float*)(workspace + 0);
  float* const total = (float*)(workspace + 64);
  const int i4 = blockIdx.x;
  const int i5 = threadIdx.x;
  for (int i6 = 0; i6 < 2; ++i6) {
    if (i6 * 32 + i5 < 33) {
      y[i4 * 33 + i5 + i6 * 32] = expf(x[i4 * 33 + i5 + i6 * 32] - top[i4]) / total[i4];
    }
  }
}
