/* Finds the functions of a driver's library at run time, so that a module is linked to none. */
#include <dlfcn.h>
#include <string.h>

#include "runtime/module/fail.h"
#include "runtime/module/gpu_driver.h"

int pruner_open_library(
    const char* file, const char* advice, const char* const* names, int count, void* calls) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL); /* stays: drivers have threads */
  if (library == NULL) return pruner_fail("no %s: %s", file, advice);
  for (int i = 0; i < count; i++) {
    void* symbol = dlsym(library, names[i]);
    if (symbol == NULL) return pruner_fail("%s is too old: it has no %s", file, names[i]);
    /* Bytes are copied: C converts no pointer to an object into one to a function. */
    memcpy((char*)calls + (size_t)i * sizeof symbol, &symbol, sizeof symbol);
  }
  return 1;
}

void* pruner_find_function(const char* file, const char* name) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  return library == NULL ? NULL : dlsym(library, name);
}
