package process

import (
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// Loaded is what is in the configs.
type Loaded struct {
	Files       []*load.File
	Activations []*load.ActivationFile
	Conversions []*load.ConversionFile
	// Problems are the errors of operators and activations, ConversionProblems those of conversions.
	Problems, ConversionProblems config.Errors
}

// Loader loads configs again if one of their files has changed: a reload is tried at an interval, too, and reads all
// files.
type Loader struct {
	// Named are the files and folders that configs are named by.
	Named []string
	// Read reads all of them.
	Read func() Loaded

	// sum is the fingerprint of the files that were loaded; empty if it is unknown.
	sum     string
	sources []string
	loaded  Loaded
}

// Load returns the configs, by a call of Read if a file has changed since the last one.
func (l *Loader) Load() Loaded {
	// before they are read: a change in between is found the next time
	sum, covered := load.Fingerprint(l.Named, l.sources)
	if sum == l.sum {
		return l.loaded
	}
	l.loaded = l.Read()
	l.sum, l.sources = sum, nil
	for _, f := range l.loaded.Files {
		for _, path := range f.Sources() {
			if l.sources = append(l.sources, path); !covered[path] {
				l.sum = "" // which files there are is known from now on
			}
		}
	}
	return l.loaded
}
