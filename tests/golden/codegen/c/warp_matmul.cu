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
extern "C" __global__ void __launch_bounds__(128) kernel_0(
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
  for (int i7 = 0; i7 < 2; ++i7) {
    const int x8 = i7 * 128 + i1;
    if (x8 < 256) {
      async_copy_16(&a_shared[x8 / 4 * 32 + ((x8 % 4) ^ (x8 / 8 % 4)) * 8], &a[x8 / 4 * 160 + x8 % 4 * 8], (x8 / 4 < 56 ? (8) : (0)) * 2);
    }
  }
  for (int i9 = 0; i9 < 1; ++i9) {
    const int x10 = i9 * 128 + i1;
    if (x10 < 128) {
      async_copy_16(&b_shared[x10 / 4 * 32 + ((x10 % 4) ^ (x10 / 8 % 4)) * 8], &b[i0 * 5120 + x10 / 4 * 160 + x10 % 4 * 8], (i0 * 32 + x10 / 4 < 48 ? (8) : (0)) * 2);
    }
  }
  commit_copies();
  for (int i11 = 0; i11 < 2; ++i11) {
    const int x12 = i11 * 128 + i1;
    if (x12 < 256) {
      async_copy_16(&a_shared[x12 / 4 * 32 + ((x12 % 4) ^ (x12 / 8 % 4)) * 8 + 2048], &a[x12 / 4 * 160 + x12 % 4 * 8 + 32], (x12 / 4 < 56 ? (8) : (0)) * 2);
    }
  }
  for (int i13 = 0; i13 < 1; ++i13) {
    const int x14 = i13 * 128 + i1;
    if (x14 < 128) {
      async_copy_16(&b_shared[x14 / 4 * 32 + ((x14 % 4) ^ (x14 / 8 % 4)) * 8 + 1024], &b[i0 * 5120 + x14 / 4 * 160 + x14 % 4 * 8 + 32], (i0 * 32 + x14 / 4 < 48 ? (8) : (0)) * 2);
    }
  }
  commit_copies();
  for (int i15 = 0; i15 < 5; ++i15) {
    wait_for_copies_1();
    __syncthreads();
    for (int i16 = 0; i16 < 2; ++i16) {
      const int x17 = i16 * 128 + i1;
      if (x17 < 256) {
        async_copy_16(&a_shared[(i15 + 2) % 3 * 2048 + x17 / 4 * 32 + ((x17 % 4) ^ (x17 / 8 % 4)) * 8], &a[i15 * 32 + x17 / 4 * 160 + x17 % 4 * 8 + 64], (x17 / 4 < 56 ? (max(min(96 - i15 * 32 - x17 % 4 * 8, 8), 0)) : (0)) * 2);
      }
    }
    for (int i18 = 0; i18 < 1; ++i18) {
      const int x19 = i18 * 128 + i1;
      if (x19 < 128) {
        async_copy_16(&b_shared[(i15 + 2) % 3 * 1024 + x19 / 4 * 32 + ((x19 % 4) ^ (x19 / 8 % 4)) * 8], &b[i0 * 5120 + i15 * 32 + x19 / 4 * 160 + x19 % 4 * 8 + 64], (i0 * 32 + x19 / 4 < 48 ? (max(min(96 - i15 * 32 - x19 % 4 * 8, 8), 0)) : (0)) * 2);
      }
    }
    commit_copies();
    #pragma unroll
    for (int i20 = 0; i20 < 2; ++i20) {
      #pragma unroll
      for (int i21 = 0; i21 < 2; ++i21) {
        load_matrix_x4((unsigned*)&a_fragments[i21 * 8], &a_shared[i21 * 512 + i15 % 3 * 2048 + x2 / 2 * 1024 + x3 / 8 % 2 * 256 + x3 % 8 * 32 + ((i20 * 2 + x3 / 16) ^ (x3 % 8 / 2)) * 8]);
      }
      #pragma unroll
      for (int i22 = 0; i22 < 1; ++i22) {
        load_matrix_x4((unsigned*)&b_fragments[i22 * 8], &b_shared[i22 * 512 + i15 % 3 * 1024 + x2 % 2 * 512 + x3 / 16 * 256 + x3 % 8 * 32 + ((i20 * 2 + x3 / 8 % 2) ^ (x3 % 8 / 2)) * 8]);
      }
      #pragma unroll
      for (int i23 = 0; i23 < 2; ++i23) {
        #pragma unroll
        for (int i24 = 0; i24 < 2; ++i24) {
          mma_m16n8k16_f32_f16_f16(&sums[i23 * 8 + i24 * 4], (const unsigned*)&a_fragments[i23 * 8], (const unsigned*)&b_fragments[i24 * 4]);
        }
      }
    }
  }
  #pragma unroll
  for (int i25 = 0; i25 < 2; ++i25) {
    #pragma unroll
    for (int i26 = 0; i26 < 2; ++i26) {
      #pragma unroll
      for (int i27 = 0; i27 < 2; ++i27) {
        if (i0 / 2 * 64 + x2 / 2 * 32 + i25 * 16 + (x3 / 4 + i27 * 2 / 2 % 2 * 8) < 56 && i0 % 2 * 32 + x2 % 2 * 16 + i26 * 8 + (x3 % 4 * 2 + i27 * 2 % 2 + i27 * 2 / 2 / 2 * 8) < 48) {
          {
            f32x2 r_0;
            r_0.s0 = sums[i25 * 8 + i26 * 4 + i27 * 2];
            r_0.s1 = sums[i25 * 8 + i26 * 4 + i27 * 2 + 1];
            *(f32x2*)&c[i0 * 32 + i25 * 768 + i26 * 8 + i27 * 384 + x2 / 2 * 1536 + x3 / 4 * 48 + x2 % 2 * 16 + x3 % 4 * 2] = r_0;
          }
        }
      }
    }
  }
}
