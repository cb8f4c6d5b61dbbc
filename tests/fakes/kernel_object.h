// A "cubin" of the fakes is an ImageHeader, and then a shared object for the CPU. The object has a
// `fake_kernel_<name>` for each kernel, and one `fake_thread`. Kernels' own code includes this
// file.
#pragma once

namespace fakes {

struct ImageHeader {
  char magic[8];
  unsigned arch;
  unsigned long long bytes;  // size of the object that follows
};
inline constexpr char kImageMagic[] = "FAKECUB";

struct Index3 {
  unsigned x, y, z;
};

/// `ThreadPlace` is the place of the running thread as the kernel's code sees it.
struct ThreadPlace {
  Index3 threadIdx, blockIdx, blockDim, gridDim;
  void (*barrier)(int line);
  void (*meet)(int line);  // the lanes of a warp
  // cp.async and its groups: what is copied is there when the thread has waited.
  void (*copy)(void* to, const void* from, unsigned bytes, unsigned valid);
  void (*commit)();
  void (*wait)(unsigned groups);
};

struct KernelTable {
  void (*run)(void** arguments);
  int count;              // number of arguments
  const unsigned* bytes;  // size of each argument
  const bool* is_pointer;
  unsigned max_threads;       // __launch_bounds__; 0: none given
  char *shared, *shared_end;  // its arrays in shared memory
  char* dynamic_shared;       // room for what a launch gives it beside them
};
inline constexpr unsigned kMostSharedBytes = 227 << 10;  // limit of a block on any device

}  // namespace fakes
