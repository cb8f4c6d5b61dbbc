/* The file of a module: a shared library and behind it 32 bytes that say whether it is as it was
   written. Header only, C11 and C++17, for those who load modules themselves; pruner/module.hpp
   asks by itself. */
#ifndef PRUNER_MODULE_FILE_H_
#define PRUNER_MODULE_FILE_H_

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The checksum of the bytes before it in a file: their number, two sums of their 64-bit words. */
typedef struct {
  char magic[8];
  uint64_t bytes, sum, place_sum;
} PrunerChecksum;

#define PRUNER_CHECKSUM_MAGIC "PrunSum1"

/* Reads `bytes` of a file from its begin; 0: done. Fletcher's sums in 8 lanes, four at a time,
   which any compiler keeps in registers: any one changed byte changes them. The last 64 bytes are
   filled up with zeros. */
static inline int pruner_file_checksum(FILE* file, uint64_t bytes, PrunerChecksum* made) {
  enum { kLanes = 8, kPiece = 1 << 15 };
  uint64_t sums[kLanes] = {0}, place_sums[kLanes] = {0};
  uint64_t* words = (uint64_t*)malloc(kPiece);
  memcpy(made->magic, PRUNER_CHECKSUM_MAGIC, sizeof made->magic);
  made->bytes = bytes;
  made->sum = made->place_sum = 0;
  if (words == NULL || fseek(file, 0, SEEK_SET) != 0) {
    free(words);
    return -1;
  }
  while (bytes > 0) {
    const size_t size = bytes < kPiece ? (size_t)bytes : (size_t)kPiece;
    const size_t blocks = (size + 63) / 64;
    if (fread(words, 1, size, file) != size) {
      free(words);
      return -1;
    }
    memset((char*)words + size, 0, blocks * 64 - size);
    for (size_t first = 0; first < kLanes; first += 4) {
      uint64_t *s = sums + first, s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
      uint64_t *p = place_sums + first, p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
      for (size_t w = first; w < blocks * kLanes; w += kLanes) {
        p0 += s0 += words[w];
        p1 += s1 += words[w + 1];
        p2 += s2 += words[w + 2];
        p3 += s3 += words[w + 3];
      }
      s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
      p[0] = p0, p[1] = p1, p[2] = p2, p[3] = p3;
    }
    bytes -= size;
  }
  free(words);
  for (uint64_t lane = 0; lane < kLanes; lane++) {
    made->sum += (2 * lane + 1) * sums[lane];
    made->place_sum += (2 * lane + 1) * place_sums[lane];
  }
  return 0;
}

/* Whether a shared library ends before its table of sections does, which stands last: dlopen would
   touch bytes that are not there. */
static inline int pruner_file_is_cut(FILE* file, uint64_t bytes) {
  Elf64_Ehdr head;
  if (fseek(file, 0, SEEK_SET) != 0 || fread(&head, sizeof head, 1, file) != 1 ||
      memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) {
    return 0;
  }
  return head.e_shoff > bytes || (uint64_t)head.e_shnum * head.e_shentsize > bytes - head.e_shoff;
}

/* NULL: the file is as it was written, or one of an older version, which has no checksum, or no
   such file or library (dlopen says more of it); otherwise what is wrong with it. */
static inline const char* pruner_check_module_file(const char* path) {
  const char* problem = NULL;
  PrunerChecksum written, found;
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  setvbuf(file, NULL, _IONBF, 0);
  if (fseek(file, -(long)sizeof written, SEEK_END) == 0) {
    const long end = ftell(file);
    if (end >= 0 && fread(&written, sizeof written, 1, file) == 1) {
      if (memcmp(written.magic, PRUNER_CHECKSUM_MAGIC, sizeof written.magic) != 0) {
        if (pruner_file_is_cut(file, (uint64_t)end + sizeof written))
          problem = "truncated; compile it again";
      } else if (written.bytes != (uint64_t)end ||
                 pruner_file_checksum(file, written.bytes, &found) != 0 ||
                 written.sum != found.sum || written.place_sum != found.place_sum) {
        problem = "damaged: its bytes are not those that were written; compile it again";
      }
    }
  }
  fclose(file);
  return problem;
}

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_MODULE_FILE_H_ */
