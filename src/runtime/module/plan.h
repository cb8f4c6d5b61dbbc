/* Declares the plan that build_module() writes into a module: which kernel runs when, on what. The
   plan is made as assembly text by deploy/plan_text.cpp, so every member is 8 bytes wide. */
#ifndef PRUNER_RUNTIME_MODULE_PLAN_H_
#define PRUNER_RUNTIME_MODULE_PLAN_H_

#include <stddef.h>

#include "pruner/kernel.h"
#include "pruner/module.h"

/* A number of the plan. Those that depend on the shapes are below 0: -1 - i is value i, where the
   values are the extents of the symbols, then what the plan's formulas make of them. */
static inline int64_t plan_number(const int64_t* values, int64_t number) {
  return number >= 0 ? number : values[-1 - number];
}

/* Whether the extents that `values` begins with, one a symbol, lie in a box: the least of each
   symbol, then the greatest; NULL is every shape's. */
static inline int pruner_in_box(const int64_t* box, const int64_t* values, int64_t symbols) {
  for (int64_t s = 0; box != NULL && s < symbols; s++)
    if (values[s] < box[s] || values[s] > box[symbols + s]) return 0;
  return 1;
}

/* An instance's activations, the module's weights, the caller's tensors, the numbers of
   plan_number(), and an instance's words about indices out of range (gpu_instance.h). */
enum { kPlanArena, kPlanWeight, kPlanInput, kPlanOutput, kPlanNumbers, kPlanFailures };

/* Offsets in the arena and the weights of a GPU are multiples of kPlanGpuAlignment. NVIDIA's
   devices ask the largest alignment of OpenCL's sub-buffers. */
enum { kPlanGpuAlignment = 512 };

/* PlanAddress says where a tensor is. */
typedef struct {
  int64_t place; /* one of kPlanArena to kPlanNumbers */
  int64_t where; /* byte offset in the arena or the weights; the place among the others */
} PlanAddress;

typedef struct {
  PlanAddress at;
  int64_t bytes; /* plan_number() */
} PlanRange;

/* A kernel of a GPU as it is started, in one dimension. */
typedef struct {
  const char* kernel; /* its name in the code */
  int64_t code;       /* number of the plan's code that has it */
  int64_t blocks;
  int64_t threads;
  int64_t shared_bytes;  /* shared memory of a block */
  int64_t dynamic_bytes; /* part that the launch gives: the kernel declares the others */
  int64_t early;         /* whether it may begin before the launches before have ended */
  const PlanRange* args; /* in the order of its parameters, the workspace last */
  int64_t num_args;
} PlanLaunch;

/* Integers that a step reads at: in turn, each has to lie in [0, extent) of an extent, or in
   [-extent, extent) if they may count from the end. */
typedef struct {
  PlanRange range;
  int64_t element_bytes;  /* 4 or 8 */
  const char* name;       /* name of the tensor */
  const int64_t* extents; /* plan_number() */
  int64_t num_extents;
  int64_t from_end; /* 0: one below 0 is refused */
} PlanIndices;

/* A CPU's code for some shapes. */
typedef struct {
  PrunerKernel kernel;
  const int64_t* box; /* the least extent of each symbol, then the greatest; NULL: all shapes */
} PlanKernel;

typedef struct {
  PrunerKernelSpec spec;     /* name, sketch, flops, bytes: for profiles */
  const PlanKernel* kernels; /* a CPU's, with the shapes they take: the first for the shapes runs;
                                with one symbol, the boxes ascend without gaps */
  int64_t num_kernels;
  const PlanAddress* args; /* a PrunerKernel's inputs, then its outputs; in a module with symbols,
                              their extents stand behind them */
  int64_t num_args;
  int64_t workspace;          /* offset in the arena */
  const PlanLaunch* launches; /* a GPU's launches */
  int64_t num_launches;
  const PlanIndices* indices;
  int64_t num_indices;
  const char* precision; /* precision for profiles, like spec */
} PlanStep;

/* After the last kernel: an output that none writes in place, or a state's next content. */
typedef struct {
  PlanAddress from, to;
  int64_t bytes; /* plan_number() */
} PlanCopy;

/* PlanShapes is what runs at some shapes. */
typedef struct {
  const int64_t* box;   /* like PlanKernel's box */
  int64_t first_kernel; /* number of the first kernel in pruner_module_kernel() */
  int64_t num_steps;
  const PlanStep* steps; /* in the order they run */
  int64_t num_copies;
  const PlanCopy* copies;
  const int64_t* output_dims; /* plan_number()s, one output after the other; NULL: the spec's */
} PlanShapes;

/* PlanPhase is what runs at a time. Without symbols, a phase has one shape. */
typedef struct {
  PrunerPhase spec; /* at the greatest shape */
  int64_t num_shapes;
  const PlanShapes* shapes;  /* the first one's kernels are those of the spec */
  const int64_t* input_dims; /* like output_dims */
  int64_t num_symbols;
  const PrunerSymbol* symbols;
  int64_t num_formulas;
  PrunerKernel formulas; /* takes the numbers to write, then the extents; or NULL */
  int64_t first_value;   /* place of plan_number()'s values among the plan's num_values */
} PlanPhase;

/* PlanTensor is handed on by a network's stages if data decide extents (graph/pipeline). */
typedef struct {
  PrunerTensorSpec spec; /* with all that there is room for */
  int64_t element_bytes;
  int64_t input;     /* number of the caller's tensor that this tensor is, or -1 */
  int64_t offset;    /* offset in the arena if `input` is -1 */
  int64_t first_dim; /* place of the dims among the plan's num_values */
} PlanTensor;

/* PlanFound holds numbers of tensors, and a place among the plan's num_values for the extent.
   `room` is -1 if nobody reads elements of the part. */
typedef struct {
  int64_t room, part, count, axis, symbol;
  int64_t least; /* least count that is allowed */
} PlanFound;
typedef struct {
  int64_t num_parts;
  const int64_t* parts;
  int64_t whole, axis, symbol;
} PlanJoin;

/* PlanParts says what becomes of tensors that were made. */
typedef struct {
  int64_t num_found;
  const PlanFound* found;
  int64_t num_joins;
  const PlanJoin* joins;
} PlanParts;

/* The phase of the same number. */
typedef struct {
  const int64_t* symbols; /* places of their extents among the plan's num_values */
  const int64_t* inputs;  /* tensors */
  const int64_t* outputs;
  PlanParts then; /* parts after the stage has run */
} PlanStage;

typedef struct {
  int64_t init, state, next, last; /* tensors */
} PlanCarried;
typedef struct {
  int64_t init; /* -1: it begins with nothing */
  int64_t part, whole;
} PlanLoopStack;

/* Stages that are run again and again: Pipeline::Loop. Tensors are -1 where there are none. */
typedef struct {
  int64_t first, last; /* stages */
  int64_t trips, condition, next, rounds, round;
  int64_t num_carried;
  const PlanCarried* carried;
  int64_t num_stacks;
  const PlanLoopStack* stacks;
  int64_t num_symbols;
  const int64_t* symbols; /* places of their extents among the plan's num_values */
  PlanParts begin;        /* parts when a round begins */
  PlanParts then;         /* parts when all rounds have been run */
} PlanLoop;

typedef struct {
  PrunerPhase spec; /* spec of all stages together */
  int64_t num_tensors;
  const PlanTensor* tensors;
  const PlanStage* stages;
  int64_t num_loops;
  const PlanLoop* loops;
  const int64_t* outputs; /* tensors */
  int64_t num_symbols;
  int64_t first_symbol; /* place of the symbols' extents among the plan's num_values */
} PlanPipeline;

/* A tensor that an instance keeps. */
typedef struct {
  int64_t offset; /* in the arena */
  int64_t bytes;
} PlanState;

/* A cubin, or OpenCL C. */
typedef struct {
  const char* bytes;
  int64_t size;
} PlanCode;

struct PlanExecutor;
struct GpuDriver;

typedef struct {
  /* Each member is a number of plan_text.cpp's .quad lines, in this order. */
  int64_t abi; /* PRUNER_MODULE_ABI */
  int64_t threads;
  int64_t flushes_denormals;           /* 1: a CPU's kernels take subnormal numbers for zeros; 0: in
                                          the caller's mode */
  const struct PlanExecutor* executor; /* who runs it */
  const struct GpuDriver* driver;      /* and through what, on a GPU */
  const char* cpu_features;            /* "avx512f fma ...": what the kernels need */
  const char* gpu_arch;                /* "sm_80", "": none */
  const unsigned char* weights;        /* in read-only pages of the module's file */
  int64_t weight_bytes;
  int64_t arena_bytes; /* bytes of one instance's arena */
  int64_t state_bytes; /* first bytes of the arena, which hold the states */
  int64_t num_phases;
  const PlanPhase* phases;
  int64_t num_kernels; /* number of all phases' kernels */
  int64_t num_states;
  const PrunerTensorSpec* states;
  const PlanState* state_places; /* one a state */
  int64_t num_codes;
  const PlanCode* codes;        /* a GPU's code */
  const PlanPipeline* pipeline; /* its stages are the phases; NULL: phases are the caller's */
  int64_t num_values;           /* numbers that an instance has room for */
  const char* checked;          /* pruner_module_checked() */
  const char* numerics;         /* pruner_module_numerics() */
} PrunerPlan;

extern const PrunerPlan pruner_plan __attribute__((visibility("hidden")));

#endif /* PRUNER_RUNTIME_MODULE_PLAN_H_ */
