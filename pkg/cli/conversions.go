package cli

import (
	"github.com/corollary-dev/corollary/pkg/config"
)

// loadConversions reads the conversions among the configs.
func (f *configFlags) loadConversions(streams func() IO) ([]*config.ConversionFile, config.Errors, error) {
	files, problems, err := f.load(streams())
	if err != nil {
		return nil, nil, err
	}
	list, more := f.conversionsBeside(files, streams())
	return list, append(problems, more...), nil
}

// conversionsBeside returns the conversions of operators that are loaded, and those in files beside them.
func (f *configFlags) conversionsBeside(operators []*config.File, streams IO) ([]*config.ConversionFile, config.Errors) {
	return config.LoadConversions(config.Options{Files: f.files, Stdin: streams.In}, operators)
}
