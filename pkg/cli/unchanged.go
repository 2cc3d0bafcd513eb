package cli

import (
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// configCache keeps what the configs were loaded as, so that files that have not changed are not loaded again: a reload is tried
// at an interval, too, and reads all files.
type configCache struct {
	named []string // what -c names
	// sum is the fingerprint of the files that were loaded; empty if it is unknown.
	sum     string
	sources []string
	files   []*load.File
	errs    config.Errors
}

// load returns the configs, by a call of read if a file has changed since the last one.
func (c *configCache) load(read func() ([]*load.File, config.Errors)) ([]*load.File, config.Errors) {
	sum, covered := load.Fingerprint(c.named, c.sources) // before they are read: a change in between is found the next time
	if sum == c.sum {
		return c.files, c.errs
	}
	c.files, c.errs = read()
	c.sum, c.sources = sum, nil
	for _, f := range c.files {
		for _, path := range f.Sources() {
			if c.sources = append(c.sources, path); !covered[path] {
				c.sum = "" // which files there are is known from now on
			}
		}
	}
	return c.files, c.errs
}
