/* RoiAlign (He et al., "Mask R-CNN", 2017): a region's bins, each the mean or the greatest of
   samples between four elements. */
#include <string.h>

#include "graph/routines/elements.h"

typedef struct {
  const PrunerRoiAlign* p;
  const void *data, *regions;
  const int64_t* images;
  void* out;
  double scale;
} Call;

/* The elements around a sample and what each counts; none of one that lies outside. */
typedef struct {
  int64_t at[4];
  double weight[4];
} Sample;

static double element(const Call* call, int64_t i) {
  return call->p->dtype == PRUNER_FLOAT32 ? ((const float*)call->data)[i]
                                          : pruner_get_real(call->data, call->p->dtype, i);
}

/* A place's lower neighbour and how far it lies behind that. Places up to one element outside
   count as those at the border. */
static int64_t split(double* place, int64_t extent) {
  const double x = *place > 0 ? *place : 0;
  int64_t low = (int64_t)x;
  if (low >= extent - 1) low = extent - 1;
  *place = low == extent - 1 ? 0 : x - (double)low;
  return low;
}

static Sample sample_at(const PrunerRoiAlign* p, double y, double x) {
  Sample s = {{0}, {0}};
  if (!(y >= -1 && y <= (double)p->height && x >= -1 && x <= (double)p->width)) return s;
  const int64_t row = split(&y, p->height), column = split(&x, p->width);
  for (int i = 0; i < 4; i++) {
    const int64_t down = i / 2, right = i % 2;
    s.weight[i] = (down ? y : 1 - y) * (right ? x : 1 - x);
    const int64_t r = row + down < p->height ? row + down : row;
    const int64_t c = column + right < p->width ? column + right : column;
    s.at[i] = r * p->width + c;
  }
  return s;
}

static int64_t rounded_up(double x) {
  const int64_t whole = (int64_t)x;
  return whole + ((double)whole < x);
}

enum { kSamples = 256 }; /* that are worked out at a time, for all channels */

/* A region: its first bin's corner and a bin's size, in rows and columns of the data, and how many
   samples a bin has along each. */
typedef struct {
  double start[2], size[2];
  int64_t image, samples[2];
} Region;

/* What `samples`, from number `from` on of a bin's, make of a channel that had `result`. */
static double add_samples(const Call* call,
                          int64_t plane,
                          const Sample* samples,
                          int64_t from,
                          int64_t to,
                          int64_t count,
                          double result) {
  double sum = 0;
  for (int64_t i = from; i < to; i++) {
    const Sample* s = &samples[i - from];
    double parts[4];
    for (int n = 0; n < 4; n++) parts[n] = s->weight[n] * element(call, plane + s->at[n]);
    sum += parts[0] + parts[1] + parts[2] + parts[3];
    if (!call->p->takes_greatest) continue;
    double most = parts[0];
    for (int n = 1; n < 4; n++) most = parts[n] > most ? parts[n] : most;
    result = i == 0 || most > result ? most : result;
  }
  return call->p->takes_greatest ? result : result + sum / (double)count;
}

/* Samples [from, to) of a bin. */
static void place_samples(
    const PrunerRoiAlign* p, const Region* r, int64_t bin, int64_t from, int64_t to, Sample* made) {
  for (int64_t i = from; i < to; i++) {
    const double down = ((double)(i / r->samples[1]) + 0.5) / (double)r->samples[0];
    const double right = ((double)(i % r->samples[1]) + 0.5) / (double)r->samples[1];
    made[i - from] = sample_at(p,
                               r->start[0] + ((double)(bin / p->columns) + down) * r->size[0],
                               r->start[1] + ((double)(bin % p->columns) + right) * r->size[1]);
  }
}

/* The bins of a region. Of as many as have room for their samples these are placed once, and
   channel after channel goes over all of them: what it reads lies close together. */
static void run_region(const Call* call, int64_t roi, const Region* r) {
  const PrunerRoiAlign* p = call->p;
  const int64_t area = p->height * p->width, bins = p->rows * p->columns;
  const int64_t product = r->samples[0] * r->samples[1], count = product > 1 ? product : 1;
  const int64_t all = r->image >= 0 && r->image < p->images && product > 0 ? product : 0;
  const int64_t at_once = count < kSamples ? kSamples / count : 1;
  for (int64_t bin = 0; bin < bins; bin += at_once) {
    const int64_t end = bin + at_once < bins ? bin + at_once : bins;
    for (int64_t from = 0; from == 0 || from < all; from += kSamples) {
      const int64_t to = from + kSamples < all ? from + kSamples : all, step = to - from;
      Sample samples[kSamples];
      for (int64_t b = bin; b < end; b++)
        place_samples(p, r, b, from, to, samples + (b - bin) * step);
      for (int64_t c = 0; c < p->channels; c++) {
        const int64_t plane = (r->image * p->channels + c) * area;
        const int64_t out = (roi * p->channels + c) * bins;
        for (int64_t b = bin; b < end; b++) {
          const double before = from == 0 ? 0 : pruner_get_real(call->out, p->dtype, out + b);
          const double made =
              add_samples(call, plane, samples + (b - bin) * step, from, to, count, before);
          if (p->dtype == PRUNER_FLOAT32) {
            ((float*)call->out)[out + b] = (float)made;
          } else {
            pruner_set_real(call->out, p->dtype, out + b, made);
          }
        }
      }
    }
  }
}

static void run_rois(void* closure, int64_t begin, int64_t end) {
  const Call* call = closure;
  const PrunerRoiAlign* p = call->p;
  const double offset = p->half_pixel ? 0.5 : 0;
  for (int64_t roi = begin; roi < end; roi++) {
    Region region = {{0}, {0}, call->images[roi], {p->samples, p->samples}};
    double corner[4];
    for (int i = 0; i < 4; i++) /* x, y, x, y */
      corner[i] = pruner_get_real(call->regions, p->dtype, roi * 4 + i) * call->scale - offset;
    for (int d = 0; d < 2; d++) { /* rows, columns */
      double extent = corner[3 - d] - corner[1 - d];
      if (!p->half_pixel && extent < 1) extent = 1;
      region.start[d] = corner[1 - d];
      region.size[d] = extent / (double)(d == 0 ? p->rows : p->columns);
      if (p->samples == 0) region.samples[d] = rounded_up(region.size[d]);
    }
    run_region(call, roi, &region);
  }
}

void pruner_roi_align(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace;
  Call call = {args[3], args[0], args[1], args[2], args[4], 0};
  memcpy(&call.scale, &call.p->scale_bits, sizeof call.scale);
  pool->parallel_for(pool, run_rois, &call, call.p->rois);
}
