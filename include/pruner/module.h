/* A deployed network: a shared library made by `pruner compile`, loaded with dlopen or linked.
   Every function but pruner_module_error is thread-safe for different instances. */
#ifndef PRUNER_MODULE_H_
#define PRUNER_MODULE_H_

#include <stdint.h>

#include "pruner/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PRUNER_MODULE_ABI 5

typedef struct {
  const char* name;
  PrunerDType dtype;
  int32_t rank;
  const int64_t* shape;
} PrunerTensorSpec;

/* Returns the bytes of an element of a tensor. */
static inline int64_t pruner_element_bytes(PrunerDType dtype) {
#define PRUNER_BYTES(abi, cpp, text, kind, bits, fraction, onnx, numpy) ((bits) + 7) / 8,
  static const int64_t kBytes[] = {PRUNER_DTYPES(PRUNER_BYTES)};
#undef PRUNER_BYTES
  return kBytes[dtype];
}

/* Returns the bytes of a dense tensor that has the dims of its spec. */
static inline int64_t pruner_spec_bytes(const PrunerTensorSpec* spec) {
  int64_t bytes = pruner_element_bytes(spec->dtype);
  for (int32_t d = 0; d < spec->rank; d++) bytes *= spec->shape[d];
  return bytes;
}

/* A kernel and what one call of it has to do at least. */
typedef struct {
  const char* name;
  const char* sketch; /* the loop structure that it was made by */
  int64_t flops;
  int64_t bytes; /* to and from memory: inputs and weights read once, outputs written once */
} PrunerKernelSpec;

/* A phase that an instance can run: the network, or a part of it. Phases share weights and states,
   such as "prefill" and "decode" of a language model. */
typedef struct {
  const char* name; /* "main" if there is only one phase */
  int64_t num_inputs;
  const PrunerTensorSpec* inputs;
  int64_t num_outputs;
  const PrunerTensorSpec* outputs;
  int64_t first_kernel; /* index for pruner_module_kernel() */
  int64_t num_kernels;
} PrunerPhase;

/* A dimension that may differ from run to run, such as "batch" or "seq"; both ends are included. */
typedef struct {
  const char* name;
  int64_t min, max;
} PrunerSymbol;

typedef struct PrunerModule PrunerModule;

/* The kind of device that a module was compiled for. The numbers are DLPack's. */
enum { PRUNER_CPU = 1, PRUNER_CUDA = 2, PRUNER_OPENCL = 4 };

/* PrunerOptions says how an instance is made. Each member but `size` may be 0. */
typedef struct {
  uint64_t size;   /* sizeof(PrunerOptions) */
  int32_t threads; /* the same as in pruner_module_create() */
  int32_t device;  /* the number of the GPU among those that the driver lists */
  /* Memory of the GPU for the activations of an instance, from a pool of the caller. allocate()
     returns an address on the device that is a multiple of 16, or NULL for a failure. No work that
     is still to run may touch that memory. With NULL in place of the functions the driver's own
     memory is used. Weights never come from the pool, because all instances on a device share them.
     Modules for CUDA only. */
  void* (*allocate)(void* pool, int64_t bytes);
  void (*release)(void* pool, void* memory);
  void* pool;
} PrunerOptions;

/* Flags of a run. */
enum {
  /* The run goes into `stream` behind everything that is there, and the call returns while the
     device works. A call with a tensor in the host's memory waits all the same. */
  PRUNER_RUN_STREAM = 1,
  /* The call returns after the run has ended, also with PRUNER_RUN_STREAM. */
  PRUNER_RUN_WAIT = 2
};

/* PrunerRun asks for one run. Tensors are dense and row-major, in the order of the specs; an output
   overlaps no other tensor. */
typedef struct {
  uint64_t size; /* sizeof(PrunerRun) */
  int32_t phase;
  int32_t flags;
  const int64_t* extents; /* one a symbol, in their order; NULL: those of the greatest shape */
  const void* const* inputs;
  void* const* outputs;
  /* A byte a tensor says where the tensor lies: 0 in the host's memory, 1 in the memory of the
     module's device. NULL: all of them lie in the host's memory. */
  const uint8_t* inputs_on_device;
  const uint8_t* outputs_on_device;
  void* stream; /* a CUstream (cudaStream_t) with PRUNER_RUN_STREAM; NULL is CUDA's default one */
  double* seconds; /* if not NULL, takes the seconds of each kernel of the phase; the call waits */
} PrunerRun;

/* The PRUNER_MODULE_ABI that the module was built with. */
int32_t pruner_module_abi(void);
/* An instance with its own activations and thread pool; weights are shared. threads 0: the number
   the module was tuned for, or fewer where this process may use fewer cores (affinity, quotas of
   control groups, OMP_NUM_THREADS). On a GPU an instance has its own queue and activations; with
   CUDA the instances on a device share the weights. NULL: see pruner_module_error (e.g. a CPU
   feature that is missing, no driver). */
PrunerModule* pruner_module_create(int32_t threads);
/* Makes an instance like pruner_module_create(), with options. */
PrunerModule* pruner_module_create_with(const PrunerOptions* options);
/* Waits for the instance's runs in streams, then destroys the instance. Replays of captured graphs
   have to be over. */
void pruner_module_destroy(PrunerModule* module);
/* Why the last pruner_module_create or run of this thread failed. */
const char* pruner_module_error(void);

/* The phases; functions without a phase's number are of the first phase. */
int32_t pruner_module_num_phases(void);
const PrunerPhase* pruner_module_phase(int32_t index);

int32_t pruner_module_num_inputs(void);
int32_t pruner_module_num_outputs(void);
const PrunerTensorSpec* pruner_module_input(int32_t index);
const PrunerTensorSpec* pruner_module_output(int32_t index);

/* The number of threads of an instance, the caller's included; 0: it runs on a GPU or
   another device of OpenCL. */
int32_t pruner_module_threads(const PrunerModule* module);

/* Runs the network: dense row-major tensors in the order of the specs; an output overlaps no other
   tensor. Kernels of a CPU work on them in place: addresses that are multiples of 64 are the
   fastest. For a GPU they are copied; pruner_module_execute() takes tensors in its memory. One run
   at a time for an instance. Floats below 1.2e-38 are
   taken for zeros unless the module was compiled with --denormals keep; the calling thread's
   floating-point mode is the same afterwards. 0: done; else see pruner_module_error. */
int32_t pruner_module_run(PrunerModule* module, const void* const* inputs, void* const* outputs);

/* PRUNER_CPU, PRUNER_CUDA or PRUNER_OPENCL. */
int32_t pruner_module_device_kind(void);
/* The number of the instance's device among those of its kind; 0 on a CPU. */
int32_t pruner_module_device(const PrunerModule* module);

/* Runs what `run` asks for, as pruner_module_run() does, on the tensors where they lie. 0: done, or
   in the stream; else see pruner_module_error.

   On CUDA a run with all of its tensors on the device copies nothing over the host, allocates
   nothing and does not wait. If the stream is being captured, the run's kernels become nodes of the
   caller's graph, which holds the addresses of the tensors and of this instance. A tensor whose
   address is no multiple of 16 is copied on the device first. The tensors stay where they are until
   the run has ended. Runs of an instance follow one another, whatever their streams; replays of a
   captured graph count as runs that the caller keeps apart.

   An index out of range that lies on the device is found while the run goes on. The run then reads
   the nearest element that there is, and what it writes to states is not defined. Its error is the
   result of this call if the call waits, else of pruner_module_wait() or of the next run. */
int32_t pruner_module_execute(PrunerModule* module, const PrunerRun* run);
/* Waits for all runs of the instance. 0: they were right; else see pruner_module_error. */
int32_t pruner_module_wait(PrunerModule* module);

/* Runs a phase like pruner_module_run(). `seconds` is NULL, or takes the seconds of each of the
   phase's kernels in a profiled run. */
int32_t pruner_module_run_phase(PrunerModule* module,
                                int32_t phase,
                                const void* const* inputs,
                                void* const* outputs,
                                double* seconds);

/* The dimensions of a module that was compiled with --dim; 0: it has one shape. The specs above are
   those of the greatest shape, which pruner_module_run() runs, too. */
int32_t pruner_module_num_symbols(void);
const PrunerSymbol* pruner_module_symbol(int32_t index);
/* The dims of all inputs of a phase, and those of all outputs, one tensor after the other, when the
   symbols have these extents, in their order. 0: done; 1: it does not run at such a shape, see
   pruner_module_error. */
int32_t pruner_module_shapes(int32_t phase,
                             const int64_t* extents,
                             int64_t* inputs,
                             int64_t* outputs);
/* The other way round: the extents at which the inputs have these dims. 1: an error that names the
   input that does not fit, or the symbol that is out of its range. */
int32_t pruner_module_extents(int32_t phase, const int64_t* inputs, int64_t* extents);
/* pruner_module_run_phase() at these extents. */
int32_t pruner_module_run_shaped(PrunerModule* module,
                                 int32_t phase,
                                 const int64_t* extents,
                                 const void* const* inputs,
                                 void* const* outputs,
                                 double* seconds);
/* The kernels of pruner_module_kernel() that run at these extents, in order; 0: done. */
int32_t pruner_module_kernels_at(int32_t phase,
                                 const int64_t* extents,
                                 int64_t* first,
                                 int64_t* count);

/* The dims of all outputs of an instance's last run, one tensor after the other, of a network with
   extents that the data decide, as the number of boxes that a detector finds. The specs have the
   greatest of them, and outputs have room for that; elements lie dense in the dims given here. 1:
   the data decide none, the dims are those of the specs or of pruner_module_shapes(). */
int32_t pruner_module_output_dims(const PrunerModule* module, int64_t* dims);

/* The states that an instance keeps from run to run, of all phases: zeros at first and after a
   reset. A state is copied, between runs, to save it or to go on from a saved state. 0: done. */
int32_t pruner_module_num_states(void);
const PrunerTensorSpec* pruner_module_state(int32_t index);
int32_t pruner_module_read_state(const PrunerModule* module, int32_t index, void* to);
int32_t pruner_module_write_state(PrunerModule* module, int32_t index, const void* from);
int32_t pruner_module_reset(PrunerModule* module);

/* Kernels in execution order, phase after phase, for profiles. */
int32_t pruner_module_num_kernels(void);
const PrunerKernelSpec* pruner_module_kernel(int32_t index);
/* The arithmetic of a kernel's products: "float32" and the like, or a unit for narrow numbers.
   Units are "bfloat16", "int8" or "int8_alike" of vectors, "bfloat16_tile", "float16_tile" or
   "int8_tile". "": not known. */
const char* pruner_module_kernel_precision(int32_t index);
/* How the kernels were checked when the module was compiled: "checked", or "not checked: " and why.
   A check runs a kernel once and compares it with a reference. */
const char* pruner_module_checked(void);
/* The rounding of quantized operators: "onnx", or "ort" if the module was compiled with --numerics
   ort. */
const char* pruner_module_numerics(void);
int32_t pruner_module_run_profiled(PrunerModule* module,
                                   const void* const* inputs,
                                   void* const* outputs,
                                   double* seconds);
/* Seconds that all kernels of the first phase take on a GPU, one behind the other, on what lies in
   its memory: a run without the copies of inputs and outputs. The kernels work on the copies of
   inputs that the last run with tensors in the host's memory has left. 1: not known of this device,
   see pruner_module_error. */
int32_t pruner_module_time_kernels(PrunerModule* module, double* seconds);

/* All of these functions at once, under names without the prefix. A later version has more of them
   at the end: `size` says how many bytes of the table there are. */
typedef struct {
  uint64_t size;
  int32_t (*abi)(void);
  PrunerModule* (*create)(int32_t threads);
  void (*destroy)(PrunerModule* module);
  const char* (*error)(void);
  int32_t (*threads)(const PrunerModule* module);
  int32_t (*num_phases)(void);
  const PrunerPhase* (*phase)(int32_t index);
  int32_t (*run_phase)(PrunerModule* module,
                       int32_t phase,
                       const void* const* inputs,
                       void* const* outputs,
                       double* seconds);
  int32_t (*num_states)(void);
  const PrunerTensorSpec* (*state)(int32_t index);
  int32_t (*read_state)(const PrunerModule* module, int32_t index, void* to);
  int32_t (*write_state)(PrunerModule* module, int32_t index, const void* from);
  int32_t (*reset)(PrunerModule* module);
  int32_t (*num_kernels)(void);
  const PrunerKernelSpec* (*kernel)(int32_t index);
  const char* (*kernel_precision)(int32_t index);
  /* Since version 4. */
  int32_t (*num_symbols)(void);
  const PrunerSymbol* (*symbol)(int32_t index);
  int32_t (*shapes)(int32_t phase, const int64_t* extents, int64_t* inputs, int64_t* outputs);
  int32_t (*extents)(int32_t phase, const int64_t* inputs, int64_t* extents);
  int32_t (*run_shaped)(PrunerModule* module,
                        int32_t phase,
                        const int64_t* extents,
                        const void* const* inputs,
                        void* const* outputs,
                        double* seconds);
  int32_t (*kernels_at)(int32_t phase, const int64_t* extents, int64_t* first, int64_t* count);
  /* Since version 4, where `size` says so. */
  const char* (*checked)(void);
  const char* (*numerics)(void);
  int32_t (*time_kernels)(PrunerModule* module, double* seconds);
  int32_t (*output_dims)(const PrunerModule* module, int64_t* dims);
  /* Since version 5. */
  PrunerModule* (*create_with)(const PrunerOptions* options);
  int32_t (*device_kind)(void);
  int32_t (*device)(const PrunerModule* module);
  int32_t (*execute)(PrunerModule* module, const PrunerRun* run);
  int32_t (*wait)(PrunerModule* module);
} PrunerModuleApi;

/* Modules of version 3 have no table, but the functions that it has up to kernel_precision. */
const PrunerModuleApi* pruner_module_api(void);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_MODULE_H_ */
