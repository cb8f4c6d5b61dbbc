/* An instance of a module on a GPU: what gpu_executor.c makes, and gpu_schedule.c runs. */
#ifndef PRUNER_RUNTIME_MODULE_GPU_INSTANCE_H_
#define PRUNER_RUNTIME_MODULE_GPU_INSTANCE_H_

#include "runtime/module/executor.h"
#include "runtime/module/gpu_driver.h"

/* A recording of a run on tensors at fixed places. */
typedef struct {
  int64_t* key;        /* extents, then where each tensor lies; NULL: this entry is free */
  GpuHandle recording; /* 0: a run with this key was seen once, and is recorded the next time */
  int64_t last_used;   /* number of the run */
} GpuRecording;

/* An instance keeps the recordings of so many different lists of tensors: a caller that has more in
   turn, or always new ones, launches each kernel by itself. */
enum { kMostRecordings = 8 };

/* `from` and `to` are the ends of one of the plan's copies. An end is 0 if each run gives it anew.
 */
typedef struct {
  GpuHandle from, to;
} GpuCopy;

/* GpuSchedule has the launches of one PlanShapes. */
typedef struct {
  const PlanPhase* phase;
  const PlanShapes* shapes;
  GpuHandle* kernels;         /* one a launch, in the order of the steps */
  GpuHandle* args;            /* arguments of all launches, one after the other */
  const PlanAddress** arg_at; /* the plan's address of each argument */
  int64_t num_args;
  GpuHandle* step_recordings; /* one a step, with kTimedRuns runs of it; 0: not timed yet */
  GpuCopy* copies;            /* one a copy of the plan */
  unsigned char* is_copied;   /* one an output: whether a copy of the plan writes it */
  GpuHandle kernel_recording; /* recording of the kernels alone; 0: not timed yet */
  GpuRecording recordings[kMostRecordings];
} GpuSchedule;

/* GpuStaging has an instance's own places for the tensors of a phase, inputs before outputs. Each
   is made when it is first needed: for a tensor in the host's memory, and for one whose address
   kernels cannot read. */
typedef struct {
  GpuHandle* places; /* on the device */
  void** pinned;     /* in the host's memory, where a recorded copy has its other side */
} GpuStaging;

/* A handle of the driver's to be released. */
typedef struct {
  int kind;
  GpuHandle handle;
} GpuMade;

/* The weights and the programs on a device. Instances on a device share them where the driver lets
   them. */
typedef struct GpuShared {
  int32_t device;
  int64_t users;
  GpuHandle weights;
  GpuHandle* programs; /* one a code of the plan */
  struct GpuShared* next;
} GpuShared;

struct PrunerModule {
  GpuDevice* device; /* the driver's device; no other instance uses the queue of `device` */
  PrunerOptions options;
  GpuShared* shared;
  GpuHandle arena;
  GpuHandle saved;        /* room for a copy of the states, made by the first timing; 0: none yet */
  GpuSchedule* schedules; /* one for each PlanShapes, phase after phase */
  int64_t num_schedules;
  GpuStaging* staging; /* one a phase */
  int64_t* values;     /* the plan's num_values, at the shapes of the last run */
  GpuMade* made;       /* in the order they were made; destroy() goes backwards */
  int64_t num_made, room_made;
  int64_t num_runs;
  /* A word for each tensor of indices that a step reads at, kPlanGpuAlignment bytes apart. A kernel
     that finds an index out of range writes the index there, or 1 for an index of 0. */
  int64_t num_words;
  GpuHandle words;        /* the device's address of the words */
  volatile int64_t* read; /* the words, in the host's memory */
  int64_t* key;           /* the key of the run that goes on */
  int is_pinned;          /* whether its outputs are in pinned memory */
};

/* Notes that a handle, which a driver's call made, is to be released with the module as `kind`.
   Returns the handle; 0, a failure of the call, stays 0. */
GpuHandle pruner_gpu_keep(PrunerModule* module, int kind, GpuHandle handle);
/* Memory on the device; nobody has 0 bytes. */
GpuHandle pruner_gpu_allocate(PrunerModule* module, int64_t bytes);

/* Makes the tables of a schedule, whose phase and shapes are set. Returns 0 if memory is out or the
   driver fails. */
int pruner_gpu_make_schedule(PrunerModule* module, GpuSchedule* schedule);
/* Frees the tables of a schedule. */
void pruner_gpu_free_schedule(GpuSchedule* schedule);
/* Releases the recordings of runs. */
void pruner_gpu_forget_recordings(PrunerModule* module, GpuSchedule* schedule);

/* Puts a run into the queue; 0 for a failure. `captured`: the queue records the caller's graph. */
int pruner_gpu_enqueue(PrunerModule* module,
                       GpuSchedule* schedule,
                       const PlanRun* run,
                       int captured);
/* Copies outputs from pinned memory to the caller, after the wait for the run. */
void pruner_gpu_take_outputs(PrunerModule* module, const PlanRun* run);
/* Seconds of all kernels of a schedule, on the instance's own places of tensors. */
int pruner_gpu_time_kernels(PrunerModule* module, GpuSchedule* schedule, double* seconds);

static inline int64_t pruner_num_tensors(const PlanPhase* phase) {
  return phase->spec.num_inputs + phase->spec.num_outputs;
}
/* Whether all tensors of a run lie on the device, or none if `on_device` is 0. */
int pruner_gpu_all_lie(const PlanRun* run, int on_device);
/* Whether the driver finds the tensors of one place there, on the device or in the host's memory.
 */
int pruner_gpu_check_addresses(PrunerModule* module, const PlanRun* run, int on_device);

#endif /* PRUNER_RUNTIME_MODULE_GPU_INSTANCE_H_ */
