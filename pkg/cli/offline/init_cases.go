package offline

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/corollary-dev/corollary/pkg/cases"
	"github.com/corollary-dev/corollary/pkg/scaffold"
)

// casesDir is where init puts its case, beside the config.
const casesDir = "cases"

// caseFile is the name of the case about the sample.
func caseFile(d *scaffold.Draft) string { return path.Join(casesDir, d.Name+".yaml") }

// caseText is a case about the sample that expects nothing yet.
func (o *initOptions) caseText(d *scaffold.Draft) (string, error) {
	var crds []string
	for _, file := range o.definitions(d) {
		at, err := relative(o.at(casesDir), file)
		if err != nil {
			return "", err
		}
		crds = append(crds, at)
	}
	reason := fmt.Sprintf("The custom resource renders the manifests that the config was made from: `%s test %s --update` wrote the expected result.", o.program,
		o.at(casesDir))
	return string(cases.NewText(reason, path.Join("..", operatorFile), crds, []byte(d.Sample))), nil
}

// relative is the path of a file as seen from a directory.
func relative(dir, file string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("naming %s: %w", file, err)
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("naming %s: %w", file, err)
	}
	at, err := filepath.Rel(from, to)
	if err != nil {
		return "", fmt.Errorf("naming %s: %w", file, err)
	}
	return filepath.ToSlash(at), nil
}

// expect fills in what the case expects, as test --update does.
func (o *initOptions) expect(ctx context.Context, d *scaffold.Draft) error {
	runner := cases.Runner{Update: true}
	if err := errors.Join(runner.Run(ctx, o.at(caseFile(d))).Errs...); err != nil {
		return fmt.Errorf("writing the case: %w", err)
	}
	return nil
}
