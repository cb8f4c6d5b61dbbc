static __device__ __forceinline__ unsigned shared_address(const void* place) {
  return (unsigned)__cvta_generic_to_shared(place);
}
static __device__ __forceinline__ void async_copy_16(void* to, const void* from, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(to)), "l"(from), "r"(valid)
               : "memory");
}
static __device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
static __device__ __forceinline__ void wait_for_copies_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
}
static __device__ __forceinline__ void load_matrix_x4(unsigned* to, const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}
static __device__ __forceinline__ void mma_m16n8k16_f32_f16_f16(float* sum, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct __align__(8) f32x2 {
  float s0, s1;
};
extern "C" __global__ void __launch_bounds__(128, 1) kernel_0(
    const unsigned short* __restrict__ a,
    const unsigned short* __restrict__ b,
    float* __restrict__ c) {
  const int i0 = blockIdx.x;
  __shared__ __align__(16) unsigned short a_shared[6144];
  __shared__ __align__(16) unsigned short b_shared[3072];
  const int i1 = threadIdx.x;
  const int x2 = i1 / 32;
  const int x3 = i1 % 32;
  float sums[16];
  __align__(4) unsigned short a_fragments[16];
  __align__(4) unsigned short b_fragments[8];
  #pragma unroll
  for (int i4 = 0; i4 < 2; ++i4) {
    #pragma unroll
    for (int i5 = 0; i5 < 2; ++i5) {
      #pragma unroll
      for (int i6 = 0; i6 < 4; ++i6) {
        sums[i4 * 8 + i5 * 4 + i6] = 0.0f;
      }
    }
  }
  #pragma unroll
  for (int i7 = 0; i7 < 2; ++i7) {
    if (i7 * 128 + i1 < 256) {
      async_copy_16(&a_shared[i7 * 1024 + i1 / 4 * 32 + ((i1 % 4) ^ (i1 / 8 % 4)) * 8], &a[i7 * 5120 + i1 / 4 * 160 + i1 % 4 * 8], (i7 * 32 + i1 / 4 < 56 ? (8) : (0)) * 2);
    }
  }
  #pragma unroll
  for (int i8 = 0; i8 < 1; ++i8) {
    if (i8 * 128 + i1 < 128) {
      async_copy_16(&b_shared[i8 * 1024 + i1 / 4 * 32 + ((i1 % 4) ^ (i1 / 8 % 4)) * 8], &b[i0 * 5120 + i8 * 5120 + i1 / 4 * 160 + i1 % 4 * 8], (i0 * 32 + i8 * 32 + i1 / 4 < 48 ? (8) : (0)) * 2);
    }
  }
  commit_copies();
  #pragma unroll
  for (int i9 = 0; i9 < 2; ++i9) {
    if (i9 * 128 + i1 < 256) {
      async_copy_16(&a_shared[i9 * 1024 + i1 / 4 * 32 + ((i1 % 4) ^ (i1 / 8 % 4)) * 8 + 2048], &a[i9 * 5120 + i1 / 4 * 160 + i1 % 4 * 8 + 32], (i9 * 32 + i1 / 4 < 56 ? (8) : (0)) * 2);
    }
  }
  #pragma unroll
  for (int i10 = 0; i10 < 1; ++i10) {
    if (i10 * 128 + i1 < 128) {
      async_copy_16(&b_shared[i10 * 1024 + i1 / 4 * 32 + ((i1 % 4) ^ (i1 / 8 % 4)) * 8 + 1024], &b[i0 * 5120 + i10 * 5120 + i1 / 4 * 160 + i1 % 4 * 8 + 32], (i0 * 32 + i10 * 32 + i1 / 4 < 48 ? (8) : (0)) * 2);
    }
  }
  commit_copies();
  #pragma unroll 1
  for (int i11 = 0; i11 < 5; ++i11) {
    wait_for_copies_1();
    __syncthreads();
    #pragma unroll
    for (int i12 = 0; i12 < 2; ++i12) {
      if (i12 * 128 + i1 < 256) {
        async_copy_16(&a_shared[i12 * 1024 + (i11 + 2) % 3 * 2048 + i1 / 4 * 32 + ((i1 % 4) ^ (i1 / 8 % 4)) * 8], &a[i11 * 32 + i12 * 5120 + i1 / 4 * 160 + i1 % 4 * 8 + 64], (i12 * 32 + i1 / 4 < 56 ? (max(min(96 - i11 * 32 - i1 % 4 * 8, 8), 0)) : (0)) * 2);
      }
    }
    #pragma unroll
    for (int i13 = 0; i13 < 1; ++i13) {
      if (i13 * 128 + i1 < 128) {
        async_copy_16(&b_shared[i13 * 1024 + (i11 + 2) % 3 * 1024 + i1 / 4 * 32 + ((i1 % 4) ^ (i1 / 8 % 4)) * 8], &b[i0 * 5120 + i11 * 32 + i13 * 5120 + i1 / 4 * 160 + i1 % 4 * 8 + 64], (i0 * 32 + i13 * 32 + i1 / 4 < 48 ? (max(min(96 - i11 * 32 - i1 % 4 * 8, 8), 0)) : (0)) * 2);
      }
    }
    commit_copies();
    #pragma unroll
    for (int i14 = 0; i14 < 2; ++i14) {
      #pragma unroll
      for (int i15 = 0; i15 < 2; ++i15) {
        load_matrix_x4((unsigned*)&a_fragments[i15 * 8], &a_shared[i15 * 512 + i11 % 3 * 2048 + x2 / 2 * 1024 + x3 / 8 % 2 * 256 + x3 % 8 * 32 + ((i14 * 2 + x3 / 16) ^ (x3 % 8 / 2)) * 8]);
      }
      #pragma unroll
      for (int i16 = 0; i16 < 1; ++i16) {
        load_matrix_x4((unsigned*)&b_fragments[i16 * 8], &b_shared[i16 * 512 + i11 % 3 * 1024 + x2 % 2 * 512 + x3 / 16 * 256 + x3 % 8 * 32 + ((i14 * 2 + x3 / 8 % 2) ^ (x3 % 8 / 2)) * 8]);
      }
      #pragma unroll
      for (int i17 = 0; i17 < 2; ++i17) {
        #pragma unroll
        for (int i18 = 0; i18 < 2; ++i18) {
          mma_m16n8k16_f32_f16_f16(&sums[i17 * 8 + i18 * 4], (const unsigned*)&a_fragments[i17 * 8], (const unsigned*)&b_fragments[i18 * 4]);
        }
      }
    }
  }
  #pragma unroll
  for (int i19 = 0; i19 < 2; ++i19) {
    #pragma unroll
    for (int i20 = 0; i20 < 2; ++i20) {
      #pragma unroll
      for (int i21 = 0; i21 < 2; ++i21) {
        if (i0 / 2 * 64 + x2 / 2 * 32 + i19 * 16 + (x3 / 4 + i21 * 2 / 2 % 2 * 8) < 56 && i0 % 2 * 32 + x2 % 2 * 16 + i20 * 8 + (x3 % 4 * 2 + i21 * 2 % 2 + i21 * 2 / 2 / 2 * 8) < 48) {
          {
            f32x2 r_0;
            r_0.s0 = sums[i19 * 8 + i20 * 4 + i21 * 2];
            r_0.s1 = sums[i19 * 8 + i20 * 4 + i21 * 2 + 1];
            *(f32x2*)&c[i0 * 32 + i19 * 768 + i20 * 8 + i21 * 384 + x2 / 2 * 1536 + x3 / 4 * 48 + x2 % 2 * 16 + x3 % 4 * 2] = r_0;
          }
        }
      }
    }
  }
}
