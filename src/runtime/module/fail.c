#include "runtime/module/fail.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char error[4096];

int pruner_fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(error, sizeof error, format, values);
  va_end(values);
  return 0;
}

const char* pruner_failure(void) { return error; }
