static inline long floor_mod64(long a, long b) {
  if (b == 0 || b == -1) return 0;
  const long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
typedef ushort2 f16x2;
__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void kernel_0(
    __global const ushort* restrict table,
    __global const long* restrict index,
    __global ushort* restrict y,
    __global uchar* restrict odd,
    __global int* restrict twice,
    __global char* restrict bytes) {
  const int i0 = get_group_id(0);
  const int i1 = get_local_id(0);
  *(__global f16x2*)&y[i0 * 8 + i1 * 2] = *(const __global f16x2*)&table[(long)i1 * 2L + index[i0] * 8L];
  if (i1 < 1) {
    odd[i0] = floor_mod64(index[i0], 2L) == 1L;
    twice[i0] = (int)(index[i0] * 2L - 7L);
    bytes[i0] = (char)(index[i0] * 40L);
  }
}
