package cases

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// NearestConfig is the config of a case that names none: the first file of this name from its folder upward.
const NearestConfig = "operator.yaml"

// loaded are the compiled configs of a case. If there are problems, it has no operators.
type loaded struct {
	operators []compile.Compiled
	kinds     *caseKinds
	problems  config.Errors
}

// FindNearest returns the way from a directory, given by its absolute path, to the nearest one upward that has
// NearestConfig.
func FindNearest(dir string) (up string, found bool) {
	for at, up := dir, "."; ; at, up = filepath.Dir(at), filepath.Join(up, "..") {
		if _, err := os.Stat(filepath.Join(at, NearestConfig)); err == nil {
			return up, true
		}
		if at == filepath.Dir(at) {
			return "", false
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

// compileConfigs ignores the environment, so that a case has the same result for everyone.
func compileConfigs(configs []string, source *caseKinds) (*loaded, error) {
	files, problems := load.Operators(load.Options{Files: configs})
	source.describe(files)
	list, problems, err := compile.All(files, problems, compile.Options{Kinds: assumingSource{source}})
	return &loaded{operators: list, kinds: source, problems: problems.Sort()}, err
}

// problemsFor returns the config's problems as a case expects them: with paths relative to the case.
func (cc *loaded) problemsFor(c *testCase) []string {
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

// operatorFor returns the operator for a case.
func (cc *loaded) operatorFor(c *testCase, gvk string, matches func(compile.Compiled) bool) (compile.Compiled, error) {
	var names []string
	var found []compile.Compiled
	for _, o := range cc.operators {
		names = append(names, o.Pipeline.Name)
		if (c.operator == "" || o.Pipeline.Name == c.operator) && matches(o) {
			found = append(found, o)
		}
	}
	switch {
	case c.operator != "" && !slices.Contains(names, c.operator):
		return compile.Compiled{}, fmt.Errorf("unknown operator %q: %s", c.operator, validNames(names))
	case len(found) == 0:
		return compile.Compiled{}, errors.New("no config watches " + gvk + ": " + offline.WatchedKinds(cc.operators))
	case len(found) > 1:
		return compile.Compiled{}, fmt.Errorf("operators %s and %s watch the kind: choose one, such as operator: %s",
			found[0].Pipeline.Name,
			found[1].Pipeline.Name, found[0].Pipeline.Name)
	}
	return found[0], nil
}
