package config

import "testing"

func TestGuardAllows(t *testing.T) {
	for _, tc := range []struct {
		reason, share           string
		minimum, standing, want int
	}{
		{"the share of many", "20%", 10, 1000, 200},
		{"the minimum of few", "20%", 10, 12, 10},
		{"rounded down", "20%", 0, 9, 1},
		{"none at all", "0%", 0, 1000, 0},
		{"all", "100%", 0, 7, 7},
		{"nothing stands", "20%", 0, 0, 0},
	} {
		g := &Guard{MaxChanged: tc.share, Minimum: &tc.minimum}
		if got := g.Allows(tc.standing); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
		}
	}
}
