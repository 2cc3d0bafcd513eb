package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/corollary-dev/corollary/hack/bench/work"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

// noisy is an operator whose upstreams all change at once, edited one whose objects are edited meanwhile, one after
// another.
var (
	noisy  = member{kind: 0, variant: 3}
	edited = member{kind: 1, variant: 2}
)

const (
	// noisyObjects are the upstreams of the noisy operator. All of them read one ConfigMap, which changes at each
	// noiseInterval: before the last of them is done.
	noisyObjects  = 2000
	noiseInterval = 2 * time.Second
)

// noiseSample is how soon edits of the objects of one operator are undone.
type noiseSample struct {
	// Noise says where the noisy operator runs; noNoise if it has nothing to do.
	Noise    string
	P50, P99 float64
	// Writes of the noisy operator, and of the edited one, a second.
	Writes float64
}

const (
	noNoise    = "no operator"
	noiseHere  = "an operator of the same process"
	noiseThere = "an operator of another process"
)

// measureNoise edits objects of one operator: without noise, with a noisy operator in the same process, and with the
// same operator in a process of its own, whose noise reaches the first only through the API server and the CPUs.
func (f *fleet) measureNoise(ctx context.Context) ([]noiseSample, error) {
	loud, err := fleetCluster(f.plane.Config(), noisy, noisyObjects)
	if err != nil {
		return nil, err
	}
	calm, err := fleetCluster(f.plane.Config(), edited, 3*edits)
	if err != nil {
		return nil, err
	}
	loud.names, calm.names = loud.names[1:], calm.names[1:] // the first exist
	if err := loud.createFor(ctx, noisy); err != nil {
		return nil, err
	}
	if err := calm.createFor(ctx, edited); err != nil {
		return nil, err
	}
	f.names = loud.names // so that there is time for them
	if _, err := f.settle(ctx, 2*noisyObjects); err != nil {
		return nil, err
	}
	third := len(calm.names) / 3
	var list []noiseSample
	for i, where := range []string{noNoise, noiseHere, noiseThere} {
		if where == noiseThere {
			other, err := f.moveNoise(ctx)
			if err != nil {
				return list, err
			}
			defer func() { _ = other.stop() }()
		}
		s, err := f.repairsDuring(ctx, where, loud, calm.ofDownstreams(edited, i*third, (i+1)*third))
		if err != nil {
			return list, fmt.Errorf("%s: %w", where, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// repairsDuring edits objects while the others make noise.
func (f *fleet) repairsDuring(ctx context.Context, where string, loud, calm *cluster) (s noiseSample, err error) {
	s.Noise = where
	if _, err := f.requests(); err != nil {
		return s, err
	}
	began := time.Now()
	noise, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		if where == noNoise {
			done <- nil
			return
		}
		done <- loud.changeInputOften(noise, noiseInterval)
	}()
	if where != noNoise {
		if err := pause(noiseInterval)(nil, ctx); err != nil {
			stop()
			return s, err
		}
	}
	err = calm.repairs(ctx)
	stop()
	if failed := <-done; failed != nil || err != nil {
		return s, errors.Join(failed, err)
	}
	s.P50, s.P99 = percentile(calm.latencies, 50), percentile(calm.latencies, 99)
	n, err := f.requests()
	if err != nil {
		return s, err
	}
	s.Writes = float64(n.writes) / time.Since(began).Seconds()
	_, err = f.settle(ctx, 0)
	return s, err
}

// changeInputOften changes what the upstreams read until ctx is done.
func (c *cluster) changeInputOften(ctx context.Context, interval time.Duration) error {
	for i := 0; ctx.Err() == nil; i++ {
		patch := fmt.Sprintf(`{"data":{"region":"region %s %d"}}`, time.Now().Format(time.RFC3339), i)
		if err := merge(ctx, c.configMaps, work.Settings, patch); err != nil && ctx.Err() == nil {
			return err
		}
		_ = pause(interval)(nil, ctx) // the end of ctx is the end of the noise
	}
	return nil
}

// moveNoise moves the noisy operator to a process of its own.
func (f *fleet) moveNoise(ctx context.Context) (*process, error) {
	dir := filepath.Join(f.dir, "noisy")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(f.configs, noisy.file())); err != nil {
		return nil, err
	}
	if _, err := f.settle(ctx, 0); err != nil {
		return nil, err
	}
	if err := noisy.writeConfig(dir, "first"); err != nil {
		return nil, err
	}
	probe, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &program{name: "corollary", command: func(o work.Options) []string { return f.command(dir, probe, o) }}
	other, err := p.start(f.started(), f.log)
	if err != nil {
		return nil, err
	}
	if _, err := f.settle(ctx, 0); err != nil {
		_ = other.stop()
		return nil, err
	}
	return other, nil
}
