static __device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
extern "C" __global__ void __launch_bounds__(32) kernel_0(
    const float* __restrict__ x,
    float* __restrict__ y) {
  const int i0 = blockIdx.x;
  const int i1 = threadIdx.x;
  y[i1] = expf(x[i1]);
  y[i1 + 32] = logf(x[i1]);
  y[i1 + 64] = sqrtf(x[i1]);
  y[i1 + 96] = rsqrtf(x[i1]);
  y[i1 + 128] = tanhf(x[i1]);
  y[i1 + 160] = sigmoid(x[i1]);
  y[i1 + 192] = erff(x[i1]);
  y[i1 + 224] = powf(x[i1], 2.5f);
  y[i1 + 256] = fabsf(x[i1]);
  y[i1 + 288] = floorf(x[i1]);
  y[i1 + 320] = ceilf(x[i1]);
  y[i1 + 352] = rintf(x[i1]);
  y[i1 + 384] = sinf(x[i1]);
  y[i1 + 416] = cosf(x[i1]);
}
