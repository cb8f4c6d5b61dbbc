/* RoiAlign (He et al., "Mask R-CNN", 2017): a region's bins, each the mean or the greatest of
   samples between four elements. */
#include <math.h> /* its macros alone: a module does not link libm */
#include <string.h>

#include "graph/routines/elements.h"

typedef struct {
  const PrunerRoiAlign* p;
  const void *data, *regions;
  const int64_t* images;
  void* out;
  double scale;
} Call;

/* The elements around a sample and what each counts: nothing if the sample lies outside, no number
   if its place is none. */
typedef struct {
  int64_t at[4];
  double weight[4];
} Sample;

/* The same for data of float32, places counted from a channel's first element. */
typedef struct {
  int32_t at[4];
  float weight[4];
} FloatSample;

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
  if (y < -1 || y > (double)p->height || x < -1 || x > (double)p->width) return s;
  if (y != y || x != x) {
    s.weight[0] = y + x;
    return s;
  }
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

/* How many samples a bin of a size has along a dimension: one an element. A bin that ends before it
   begins has none. A bin whose size is infinite or no number has one. */
static int64_t samples_of(double size) {
  if (size <= 0) return 0;
  if (!isfinite(size)) return 1;
  if (size > INT32_MAX) return INT32_MAX;
  const int64_t whole = (int64_t)size;
  return whole + ((double)whole < size);
}

enum { kSamples = 256 }; /* samples that are worked out at a time, for all channels */

/* Some samples of some bins of a region, in all channels. */
typedef struct {
  int64_t roi, image, first_bin, bins;
  int64_t from, to; /* samples of each bin's window */
  int64_t count;    /* samples of a bin */
  int has_all;      /* whether the window has all samples; missing ones are 0 */
  const Sample* samples;
} Part;

/* A region: its first bin's corner and a bin's size, in rows and columns of the data, and how many
   samples a bin has along each. */
typedef struct {
  double start[2], size[2];
  int64_t image, samples[2];
} Region;

/* The samples of a bin that can lie inside of the data, along rows and columns: `count` from
   `first` on. */
typedef struct {
  int64_t first[2], count[2];
} Window;

static Window all_samples(const Region* r) {
  return (Window){{0, 0}, {r->samples[0], r->samples[1]}};
}

/* Without most of those that lie outside, which a large region has without number. */
static Window inner_samples(const PrunerRoiAlign* p, const Region* r, int64_t bin) {
  Window window = all_samples(r);
  const int64_t bins[2] = {bin / p->columns, bin % p->columns}, extents[2] = {p->height, p->width};
  for (int d = 0; d < 2; d++) {
    const double begin = r->start[d] + (double)bins[d] * r->size[d];
    const double samples = (double)r->samples[d], per_element = samples / r->size[d];
    const double before = (-1 - begin) * per_element;
    const double behind = ((double)extents[d] - begin) * per_element;
    const int descends = r->size[d] < 0;
    const double low = (descends ? behind : before) - 2, high = (descends ? before : behind) + 2;
    const int64_t first = low > 0 ? (int64_t)(low < samples ? low : samples) : 0;
    const int64_t last = high < samples ? (int64_t)(high > 0 ? high : 0) : r->samples[d];
    window.first[d] = first;
    window.count[d] = last > first ? last - first : 0;
  }
  return window;
}

/* Returns `result` of a bin in a channel with samples [from, to) of a part added. */
static double add_samples(
    const Call* call, int64_t plane, const Sample* samples, const Part* part, double result) {
  double sum = 0;
  for (int64_t i = part->from; i < part->to; i++) {
    const Sample* s = &samples[i - part->from];
    double parts[4];
    for (int n = 0; n < 4; n++)
      parts[n] = s->weight[n] * pruner_get_real(call->data, call->p->dtype, plane + s->at[n]);
    sum += parts[0] + parts[1] + parts[2] + parts[3];
    if (!call->p->takes_greatest) continue;
    double most = parts[0];
    for (int n = 1; n < 4; n++) most = parts[n] > most ? parts[n] : most;
    result = (i == 0 && part->has_all) || most > result ? most : result;
  }
  return call->p->takes_greatest ? result : result + sum / (double)part->count;
}

/* Means of bins of `step` samples each, of a channel of float32; `before`: it has others of theirs
   already. */
static void add_means(const float* plane,
                      const FloatSample* s,
                      int64_t bins,
                      int64_t step,
                      float part,
                      int before,
                      float* out) {
  for (int64_t b = 0; b < bins; b++) {
    float sums[4] = {0, 0, 0, 0};
    for (const FloatSample* end = s + step; s < end; s++)
      for (int n = 0; n < 4; n++) sums[n] += s->weight[n] * plane[s->at[n]];
    const float mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * part;
    out[b] = before ? out[b] + mean : mean;
  }
}

/* Samples [part->from, part->to) of a bin's window. */
static void place_samples(const PrunerRoiAlign* p,
                          const Region* r,
                          int64_t bin,
                          const Window* window,
                          const Part* part,
                          Sample* made) {
  for (int64_t i = part->from; i < part->to; i++) {
    const int64_t row = window->first[0] + i / window->count[1];
    const int64_t column = window->first[1] + i % window->count[1];
    const double down = ((double)row + 0.5) / (double)r->samples[0];
    const double right = ((double)column + 0.5) / (double)r->samples[1];
    made[i - part->from] =
        sample_at(p,
                  r->start[0] + ((double)(bin / p->columns) + down) * r->size[0],
                  r->start[1] + ((double)(bin % p->columns) + right) * r->size[1]);
  }
}

static void add_float_part(const Call* call, const Part* part) {
  const PrunerRoiAlign* p = call->p;
  const int64_t area = p->height * p->width, step = part->to - part->from;
  FloatSample samples[kSamples];
  for (int64_t i = 0; i < part->bins * step; i++) {
    for (int n = 0; n < 4; n++) {
      samples[i].at[n] = (int32_t)part->samples[i].at[n];
      samples[i].weight[n] = (float)part->samples[i].weight[n];
    }
  }
  for (int64_t c = 0; c < p->channels; c++)
    add_means(
        (const float*)call->data + (part->image * p->channels + c) * area,
        samples,
        part->bins,
        step,
        (float)(1.0 / (double)part->count),
        part->from > 0,
        (float*)call->out + (part->roi * p->channels + c) * p->rows * p->columns + part->first_bin);
}

static void add_part(const Call* call, const Part* part) {
  const PrunerRoiAlign* p = call->p;
  const int64_t area = p->height * p->width, step = part->to - part->from;
  for (int64_t c = 0; c < p->channels; c++) {
    const int64_t plane = (part->image * p->channels + c) * area;
    const int64_t first = (part->roi * p->channels + c) * p->rows * p->columns + part->first_bin;
    for (int64_t b = 0; b < part->bins; b++) {
      const double before = part->from == 0 ? 0 : pruner_get_real(call->out, p->dtype, first + b);
      const Sample* samples = part->samples + b * step;
      pruner_set_real(
          call->out, p->dtype, first + b, add_samples(call, plane, samples, part, before));
    }
  }
}

/* Some bins of a region, all of one window. */
static void run_bins(const Call* call, const Region* r, const Window* window, Part* part) {
  const PrunerRoiAlign* p = call->p;
  const int of_floats =
      p->dtype == PRUNER_FLOAT32 && !p->takes_greatest && p->height * p->width <= INT32_MAX;
  const int64_t all = window->count[0] * window->count[1];
  part->has_all = all == part->count;
  for (part->from = 0; part->from == 0 || part->from < all; part->from += kSamples) {
    part->to = part->from + kSamples < all ? part->from + kSamples : all;
    Sample samples[kSamples];
    for (int64_t b = 0; b < part->bins; b++)
      place_samples(p, r, part->first_bin + b, window, part, samples + b * (part->to - part->from));
    part->samples = samples;
    if (of_floats) add_float_part(call, part);
    if (!of_floats) add_part(call, part);
  }
}

/* The bins of a region. Of as many as have room for their samples these are placed once, and
   channel after channel goes over all of them: what it reads lies close together. */
static void run_region(const Call* call, int64_t roi, const Region* r) {
  const PrunerRoiAlign* p = call->p;
  const int64_t bins = p->rows * p->columns, all = r->samples[0] * r->samples[1];
  const int64_t at_once = all == 0 ? bins : all < kSamples ? kSamples / all : 1;
  Part part = {roi, r->image, 0, 0, 0, 0, all > 0 ? all : 1, 0, NULL};
  for (; part.first_bin < bins; part.first_bin += at_once) {
    part.bins = part.first_bin + at_once < bins ? at_once : bins - part.first_bin;
    const Window window = at_once == 1 ? inner_samples(p, r, part.first_bin) : all_samples(r);
    run_bins(call, r, &window, &part);
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
      if (p->samples == 0) region.samples[d] = samples_of(region.size[d]);
    }
    run_region(call, roi, &region);
  }
}

void pruner_roi_align(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace;
  const PrunerRoiAlign* p = args[3];
  Call call = {p, args[0], args[1], args[2], args[4], pruner_double_of(p->scale_bits)};
  pool->parallel_for(pool, run_rois, &call, p->rois);
}
