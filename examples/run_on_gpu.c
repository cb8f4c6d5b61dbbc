/* Runs a module for CUDA on tensors in the GPU's memory: in a stream, then from a CUDA graph.

   pruner compile --network resnet_18 --target "cuda --arch=sm_90" -o resnet_18.so
   cc -Iinclude examples/run_on_gpu.c ./resnet_18.so -lcuda -o run_on_gpu && ./run_on_gpu

   Prints the first element of each output, once for each way. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda_driver.h"
#include "pruner/module.h"

static void check(CUresult status, const char* call) {
  if (status == 0) return;
  fprintf(stderr, "%s: CUDA's error %d\n", call, (int)status);
  exit(1);
}
#define CHECK(call) check(call, #call)

static void check_run(int32_t failed) {
  if (!failed) return;
  fprintf(stderr, "%s\n", pruner_module_error());
  exit(1);
}

/* Memory of the GPU that holds zeros. */
static void* zeros(const PrunerTensorSpec* spec) {
  const size_t bytes = (size_t)pruner_spec_bytes(spec);
  CUdeviceptr address = 0;
  void* host = calloc(bytes, 1);
  CHECK(cuMemAlloc(&address, bytes));
  CHECK(cuMemcpyHtoDAsync(address, host, bytes, NULL));
  CHECK(cuStreamSynchronize(NULL));
  free(host);
  return (void*)address;
}

static void print_outputs(const char* way, const PrunerPhase* phase, void* const* outputs) {
  for (int64_t o = 0; o < phase->num_outputs; o++) {
    const size_t bytes = (size_t)pruner_spec_bytes(&phase->outputs[o]);
    float* host = malloc(bytes < sizeof(float) ? sizeof(float) : bytes);
    CHECK(cuMemcpyDtoHAsync(host, (CUdeviceptr)outputs[o], bytes, NULL));
    CHECK(cuStreamSynchronize(NULL));
    printf("%s: %s begins with %g\n", way, phase->outputs[o].name, host[0]);
    free(host);
  }
}

int main(void) {
  CUcontext context = NULL;
  CUstream stream = NULL;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0)); /* the one that CUDA's runtime and torch use, too */
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

  PrunerOptions options = {.size = sizeof options, .device = 0};
  PrunerModule* module = pruner_module_create_with(&options);
  check_run(module == NULL);
  const PrunerPhase* phase = pruner_module_phase(0);

  void** inputs = calloc((size_t)phase->num_inputs + 1, sizeof *inputs);
  void** outputs = calloc((size_t)phase->num_outputs + 1, sizeof *outputs);
  uint8_t* on_device = malloc((size_t)(phase->num_inputs + phase->num_outputs) + 1);
  for (int64_t i = 0; i < phase->num_inputs; i++) inputs[i] = zeros(&phase->inputs[i]);
  for (int64_t o = 0; o < phase->num_outputs; o++) outputs[o] = zeros(&phase->outputs[o]);
  for (int64_t t = 0; t < phase->num_inputs + phase->num_outputs; t++) on_device[t] = 1;

  PrunerRun run = {.size = sizeof run,
                   .flags = PRUNER_RUN_STREAM,
                   .inputs = (const void* const*)inputs,
                   .outputs = outputs,
                   .inputs_on_device = on_device,
                   .outputs_on_device = on_device,
                   .stream = stream};
  check_run(pruner_module_execute(module, &run)); /* returns before the run has ended */
  check_run(pruner_module_wait(module));          /* also says whether an index was out of range */
  print_outputs("in a stream", phase, outputs);

  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  check_run(pruner_module_execute(module, &run)); /* its kernels become nodes of the graph */
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
  CHECK(cuGraphLaunch(executable, stream));
  CHECK(cuStreamSynchronize(stream));
  print_outputs("from a graph", phase, outputs);

  CHECK(cuGraphExecDestroy(executable));
  CHECK(cuGraphDestroy(graph));
  pruner_module_destroy(module);
  for (int64_t i = 0; i < phase->num_inputs; i++) CHECK(cuMemFree((CUdeviceptr)inputs[i]));
  for (int64_t o = 0; o < phase->num_outputs; o++) CHECK(cuMemFree((CUdeviceptr)outputs[o]));
  free(inputs);
  free(outputs);
  free(on_device);
  CHECK(cuStreamDestroy(stream));
  CHECK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
