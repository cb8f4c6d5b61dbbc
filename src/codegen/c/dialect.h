// Spellings that differ between CUDA C and OpenCL C: a dialect is a struct of strings.
#pragma once

#include <cstdint>

namespace pruner {

/// Words as the printer puts them before, between or after its own; {} stands for what it fills in.
struct Dialect {
  const char* name;
  const char* kernel;         // begins a kernel, with the number of threads of a block
  const char* warp_kernel;    // begins a kernel of instructions on matrices
  const char* function;       // begins any other function
  const char* global;         // address space of pointers to arguments and workspace
  const char* shared;         // address space of pointers to shared memory
  const char* shared_array;   // begins the declaration of an array in shared memory, aligned to {}
  const char* aligned_array;  // ends the declaration of an array in shared memory
  int64_t most_declared;      // bytes of shared memory that a kernel may declare
  const char* restricted;
  const char* block;                 // the block's number
  const char* thread;                // the thread's number in its block
  const char* barrier;               // orders writes to shared memory
  const char* barrier_global;        // orders writes to shared and global memory
  const char *int64, *suffix64;      // 64-bit integers, and the end of their immediates
  const char *uint64, *uint32;       // integers without a sign
  const char *int8, *byte, *bits16;  // a signed byte, one without a sign, a narrow float in memory
  const char* vector_type;           // with the name, the element's type, the lanes and the bytes
  bool vector_members;               // whether vector_type lists the lanes s0, s1, ...
  const char *infinity, *nan;
  const char *as_float, *as_int;  // functions that give the same bits as the other type
  const char *as_double, *as_long;
  const char *half_to_float, *float_to_half;  // functions of these names
  const char* math_suffix;                    // ends the names of C's functions of floats
};

inline constexpr Dialect kCudaC = {
    .name = "cuda",
    .kernel = "extern \"C\" __global__ void __launch_bounds__({})",
    // With one block at a time all registers are its; else the compiler spills some of the
    // fragments, for blocks that the shared memory has no room for.
    .warp_kernel = "extern \"C\" __global__ void __launch_bounds__({}, 1)",
    .function = "static __device__ __forceinline__",
    .global = "",
    .shared = "",
    .shared_array = "__shared__ __align__({}) ",
    .aligned_array = "",
    .most_declared = 48 << 10,
    .restricted = " __restrict__",
    .block = "blockIdx.x",
    .thread = "threadIdx.x",
    .barrier = "__syncthreads()",
    .barrier_global = "__syncthreads()",  // it orders both memories within the block
    .int64 = "long long",
    .suffix64 = "LL",
    .uint64 = "unsigned long long",
    .uint32 = "unsigned",
    .int8 = "signed char",
    .byte = "unsigned char",
    .bits16 = "unsigned short",
    // {0} name, {1} element's type, {2} lanes, {3} bytes, {4} members.
    .vector_type = "struct __align__({3}) {0} {{\n  {1} {4};\n}};\n",
    .vector_members = true,
    .infinity = "__int_as_float(0x7f800000)",
    .nan = "__int_as_float(0x7fffffff)",  // the NaN that NVIDIA's instructions give
    .as_float = "__int_as_float",
    .as_int = "__float_as_int",
    .as_double = "__longlong_as_double",
    .as_long = "__double_as_longlong",
    // PTX's cvt, with the half in a 16-bit register ("h"); .rn rounds to the nearest even.
    .half_to_float = R"( float half_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
)",
    .float_to_half = R"( unsigned short float_to_half(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
)",
    .math_suffix = "f",
};

inline constexpr Dialect kOpenClC = {
    .name = "opencl",
    .kernel = "__kernel __attribute__((reqd_work_group_size({}, 1, 1))) void",
    .warp_kernel = "",  // there is none
    .function = "static inline",
    .global = "__global ",
    .shared = "__local ",
    .shared_array = "__local ",
    .aligned_array = " __attribute__((aligned(16)))",
    .most_declared = INT64_MAX,  // all the shared memory that there is
    .restricted = " restrict",
    .block = "get_group_id(0)",
    .thread = "get_local_id(0)",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE)",
    .barrier_global = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    .int64 = "long",
    .suffix64 = "L",
    .uint64 = "ulong",
    .uint32 = "uint",
    .int8 = "char",
    .byte = "uchar",
    .bits16 = "ushort",
    .vector_type = "typedef {1}{2} {0};\n",  // float4 and the like have members s0, s1, ... already
    .vector_members = false,
    .infinity = "INFINITY",
    .nan = "NAN",
    .as_float = "as_float",
    .as_int = "as_int",
    .as_double = "as_double",
    .as_long = "as_long",
    // Loads and stores of half precision need no extension; arithmetic is done in float anyway.
    .half_to_float = R"( float half_to_float(ushort bits) {
  return vload_half(0, (const __private half*)&bits);
}
)",
    .float_to_half = R"( ushort float_to_half(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (__private half*)&bits);
  return bits;
}
)",
    .math_suffix = "",
};

}  // namespace pruner
