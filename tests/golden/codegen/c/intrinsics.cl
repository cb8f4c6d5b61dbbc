static inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel_0(
    __global const float* restrict x,
    __global float* restrict y) {
  const int i0 = get_group_id(0);
  const int i1 = get_local_id(0);
  y[i1] = exp(x[i1]);
  y[i1 + 32] = log(x[i1]);
  y[i1 + 64] = sqrt(x[i1]);
  y[i1 + 96] = rsqrt(x[i1]);
  y[i1 + 128] = tanh(x[i1]);
  y[i1 + 160] = sigmoid(x[i1]);
  y[i1 + 192] = erf(x[i1]);
  y[i1 + 224] = pow(x[i1], 2.5f);
  y[i1 + 256] = fabs(x[i1]);
  y[i1 + 288] = floor(x[i1]);
  y[i1 + 320] = ceil(x[i1]);
  y[i1 + 352] = rint(x[i1]);
  y[i1 + 384] = sin(x[i1]);
  y[i1 + 416] = cos(x[i1]);
}
