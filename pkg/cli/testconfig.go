package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// nearestConfig is the file that a case without a config is about: the nearest one of this name, from its folder upward.
const nearestConfig = "operator.yaml"

// caseConfigs loads and compiles the configs of cases, each once however many cases name it.
type caseConfigs struct {
	configs []string // -c, for cases that name none
	crds    []string // --crds, likewise
	made    map[string]*caseConfig
}

// caseConfig is what the files that a case names hold. Where there are problems it has no operators.
type caseConfig struct {
	operators []compiled
	kinds     kinds.Source
	problems  config.Errors
}

// of returns the configs of a case. The error is about the case, not about what is in the configs.
func (l *caseConfigs) of(c *testCase) (*caseConfig, error) {
	configs, err := l.files(c)
	if err != nil {
		return nil, err
	}
	crds := l.crds
	if len(c.crds) > 0 {
		crds = inFolder(c.dir(), c.crds)
	}
	key := strings.Join(configs, "\x00") + "\x01" + strings.Join(crds, "\x00")
	if made, ok := l.made[key]; ok {
		return made, nil
	}
	source, err := kinds.Offline(crds...)
	if err != nil {
		return nil, c.mistake("crds", "%s", err)
	}
	made, err := loadCaseConfig(configs, source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	if l.made == nil {
		l.made = map[string]*caseConfig{}
	}
	l.made[key] = made
	return made, nil
}

func (l *caseConfigs) files(c *testCase) ([]string, error) {
	switch {
	case c.config != "":
		files := inFolder(c.dir(), []string{c.config})
		if _, err := os.Stat(files[0]); err != nil {
			return nil, c.mistake("config", "reading the config: %s", err)
		}
		return files, nil
	case len(l.configs) > 0:
		return l.configs, nil
	}
	dir, err := filepath.Abs(c.dir())
	if err != nil {
		return nil, err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, nearestConfig)); err == nil {
			up, err := filepath.Rel(dir, at)
			return inFolder(filepath.Join(c.dir(), up), []string{nearestConfig}), err
		}
		if at == filepath.Dir(at) {
			return nil, fmt.Errorf("%s: no config is named, and no folder above holds %s: add config: ../FILE, or give -c", c.path, nearestConfig)
		}
	}
}

func inFolder(dir string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		if out[i] = name; !filepath.IsAbs(name) {
			out[i] = filepath.Join(dir, name)
		}
	}
	return out
}

// loadCaseConfig does without the environment: a case comes out the same for everybody.
func loadCaseConfig(configs []string, source kinds.Source) (*caseConfig, error) {
	files, problems := config.Load(config.Options{Files: configs})
	list, more, err := compile(files, pipeline.Options{Kinds: source})
	problems = further(problems, more).Sort()
	return &caseConfig{operators: list, kinds: source, problems: problems}, err
}

// told are the config's problems as a case expects them: files are named as seen from the case.
func (cc *caseConfig) told(c *testCase) []string {
	var out []string
	for _, e := range cc.problems {
		here := *e
		if rel, err := filepath.Rel(c.dir(), e.File); err == nil {
			here.File = filepath.ToSlash(rel)
		}
		out = append(out, here.Error())
	}
	return out
}

// watching finds the operator that a case is about.
func (cc *caseConfig) watching(c *testCase, gvk string, matches func(compiled) bool) (compiled, error) {
	var names []string
	var found []compiled
	for _, o := range cc.operators {
		names = append(names, o.pipeline.Name)
		if (c.operator == "" || o.pipeline.Name == c.operator) && matches(o) {
			found = append(found, o)
		}
	}
	switch {
	case c.operator != "" && !slices.Contains(names, c.operator):
		return compiled{}, fmt.Errorf("no operator is called %s: %s", c.operator, thereIs(names))
	case len(found) == 0:
		return compiled{}, errors.New("no config watches " + gvk + ": " + watchedKinds(cc.operators))
	case len(found) > 1:
		return compiled{}, fmt.Errorf("operators %s and %s watch the kind: say which is meant with operator: %s", found[0].pipeline.Name, found[1].pipeline.Name, found[0].pipeline.Name)
	}
	return found[0], nil
}

// thereIs tells what could have been written.
func thereIs(names []string) string {
	if len(names) == 1 {
		return "there is " + names[0]
	}
	return "there are " + strings.Join(names, ", ")
}
