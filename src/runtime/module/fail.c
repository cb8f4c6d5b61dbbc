/* An error is text of its thread, at most 4095 bytes; the rest is cut off. */
#include "runtime/module/fail.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char error[4096];
static _Thread_local int is_held;

int pruner_fail(const char* format, ...) {
  if (is_held) return 0;
  va_list values;
  va_start(values, format);
  vsnprintf(error, sizeof error, format, values);
  va_end(values);
  return 0;
}

void pruner_hold_failure(int held) { is_held = held; }

const char* pruner_failure(void) { return error; }
