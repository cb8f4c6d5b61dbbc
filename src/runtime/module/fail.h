/* How every part of a module's runtime says what went wrong, for pruner_module_error(). */
#ifndef PRUNER_RUNTIME_MODULE_FAIL_H_
#define PRUNER_RUNTIME_MODULE_FAIL_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the calling thread's error; 0. */
int pruner_fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* While held, errors are not set: what follows a failure must not say another. */
void pruner_hold_failure(int held);
/* The last error of the calling thread, "" before the first. */
const char* pruner_failure(void);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_RUNTIME_MODULE_FAIL_H_ */
