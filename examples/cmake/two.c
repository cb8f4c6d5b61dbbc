/* Two networks in one program: what each takes and gives, and a run of it on zeros. */
#include <stdio.h>
#include <stdlib.h>

#include "image.h"
#include "small.h"

static void* zeros(const PrunerTensorSpec* spec) {
  size_t bytes = 8; /* an element has no more */
  for (int32_t d = 0; d < spec->rank; d++) bytes *= (size_t)spec->shape[d];
  return calloc(bytes, 1);
}

#define RUN(net)                                                               \
  do {                                                                          \
    void *inputs[8], *outputs[8];                                               \
    const int32_t num_inputs = net##_num_inputs();                             \
    const int32_t num_outputs = net##_num_outputs();                           \
    if (num_inputs > 8 || num_outputs > 8 || net##_output(0)->dtype != PRUNER_FLOAT32) { \
      fprintf(stderr, "%s: expected 8 tensors at most, the first output of floats\n", #net); \
      return 1;                                                                 \
    }                                                                           \
    for (int32_t i = 0; i < num_inputs; i++) inputs[i] = zeros(net##_input(i)); \
    for (int32_t i = 0; i < num_outputs; i++) outputs[i] = zeros(net##_output(i)); \
    PrunerModule* module = net##_create(0);                                    \
    if (module == NULL || net##_run(module, (const void**)inputs, outputs)) {  \
      fprintf(stderr, "%s: %s\n", #net, net##_error());                       \
      return 1;                                                                 \
    }                                                                           \
    printf("%s: %d kernels on %d threads, %s[0] = %g\n", #net, net##_num_kernels(), \
           net##_threads(module), net##_output(0)->name, *(float*)outputs[0]); \
    net##_destroy(module);                                                     \
    for (int32_t i = 0; i < num_inputs; i++) free(inputs[i]);                   \
    for (int32_t i = 0; i < num_outputs; i++) free(outputs[i]);                 \
  } while (0)

int main(void) {
  RUN(small);
  RUN(image);
  return 0;
}
