package main

import dto "github.com/prometheus/client_model/go"

// sumOf adds the histograms of a family, which have the same buckets; nil if there is none.
func sumOf(family *dto.MetricFamily) *dto.Histogram {
	var sum *dto.Histogram
	for _, m := range family.GetMetric() {
		h := m.GetHistogram()
		if sum == nil {
			sum = &dto.Histogram{}
			for _, b := range h.GetBucket() {
				sum.Bucket = append(sum.Bucket, &dto.Bucket{UpperBound: b.UpperBound, CumulativeCount: new(uint64)})
			}
		}
		for i, b := range h.GetBucket() {
			*sum.Bucket[i].CumulativeCount += b.GetCumulativeCount()
		}
	}
	return sum
}

// quantile estimates a quantile in seconds of what was observed between two readings, as PromQL's histogram_quantile
// does. It is 0 if nothing was.
func quantile(q float64, before, after *dto.Histogram) float64 {
	count := func(i int) float64 {
		n := float64(after.Bucket[i].GetCumulativeCount())
		if before != nil {
			n -= float64(before.Bucket[i].GetCumulativeCount())
		}
		return n
	}
	if after == nil || len(after.Bucket) == 0 || count(len(after.Bucket)-1) == 0 {
		return 0
	}
	rank := q * count(len(after.Bucket)-1)
	lower, below := 0.0, 0.0
	for i, b := range after.Bucket {
		upper, n := b.GetUpperBound(), count(i)
		if n >= rank && n > below {
			if i == len(after.Bucket)-1 { // +Inf
				return lower
			}
			return lower + (upper-lower)*(rank-below)/(n-below)
		}
		lower, below = upper, n
	}
	return lower
}
