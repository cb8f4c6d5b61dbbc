/* Declares what only our own measurements ask of the pool behind pruner/kernel.h. */
#ifndef PRUNER_RUNTIME_THREAD_POOL_H_
#define PRUNER_RUNTIME_THREAD_POOL_H_

#include "pruner/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns how many parts the caller has run because their thread was not there in time. If a job
   raises the number, the job did not have all the cores that it is to be judged on. */
int64_t pruner_pool_taken_over(const PrunerPool* pool);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_RUNTIME_THREAD_POOL_H_ */
