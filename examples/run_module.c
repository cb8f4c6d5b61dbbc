/* Runs a module on ones, from C. Build and use:
     cc -Iinclude examples/run_module.c -ldl -o run_module
     ./run_module model.so */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "pruner/module.h"

static size_t num_elements(const PrunerTensorSpec* spec) {
  size_t n = 1;
  for (int32_t d = 0; d < spec->rank; d++) n *= (size_t)spec->shape[d];
  return n;
}

static void print_spec(const char* what, const PrunerTensorSpec* spec) {
  printf("%s %s:", what, spec->name);
  for (int32_t d = 0; d < spec->rank; d++) printf(" %lld", (long long)spec->shape[d]);
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODULE.so (with a path, such as ./model.so)\n", argv[0]);
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
#define FIND(name) __typeof__(&name) find_##name = (__typeof__(&name))dlsym(library, #name)
  FIND(pruner_module_create);
  FIND(pruner_module_destroy);
  FIND(pruner_module_error);
  FIND(pruner_module_num_inputs);
  FIND(pruner_module_num_outputs);
  FIND(pruner_module_input);
  FIND(pruner_module_output);
  FIND(pruner_module_run);
  if (find_pruner_module_create == NULL) {
    fprintf(stderr, "%s is no pruner module\n", argv[1]);
    return 1;
  }
  PrunerModule* module = find_pruner_module_create(0);
  if (module == NULL) {
    fprintf(stderr, "%s: %s\n", argv[1], find_pruner_module_error());
    return 1;
  }

  const int32_t num_inputs = find_pruner_module_num_inputs();
  const int32_t num_outputs = find_pruner_module_num_outputs();
  const void** inputs = calloc((size_t)num_inputs + 1, sizeof(void*));
  void** outputs = calloc((size_t)num_outputs + 1, sizeof(void*));
  for (int32_t i = 0; i < num_inputs; i++) {
    const PrunerTensorSpec* spec = find_pruner_module_input(i);
    print_spec("input", spec);
    void* tensor = calloc(num_elements(spec) + 1, 8); /* 8: the widest element */
    if (spec->dtype == PRUNER_FLOAT32) {
      for (size_t k = 0; k < num_elements(spec); k++) ((float*)tensor)[k] = 1;
    }
    inputs[i] = tensor;
  }
  for (int32_t i = 0; i < num_outputs; i++) {
    outputs[i] = calloc(num_elements(find_pruner_module_output(i)) + 1, 8);
  }

  const int32_t status = find_pruner_module_run(module, inputs, outputs);
  if (status != 0) fprintf(stderr, "%s: %s\n", argv[1], find_pruner_module_error());
  for (int32_t i = 0; status == 0 && i < num_outputs; i++) {
    const PrunerTensorSpec* spec = find_pruner_module_output(i);
    print_spec("output", spec);
    if (spec->dtype == PRUNER_FLOAT32 && num_elements(spec) > 0) printf("  starts with %g\n", ((float*)outputs[i])[0]);
  }
  for (int32_t i = 0; i < num_inputs; i++) free((void*)inputs[i]);
  for (int32_t i = 0; i < num_outputs; i++) free(outputs[i]);
  free(inputs);
  free(outputs);
  find_pruner_module_destroy(module);
  dlclose(library);
  return status;
}
