package load

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/decode"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/config/validate"
)

// ActivationFile is a file of kind Activation.
type ActivationFile struct {
	lock.Activation

	file *File
}

// Valid reports whether nothing was found wrong in the file.
func (a *ActivationFile) Valid() bool { return a.file.Valid() }

// Path is the file as it was given.
func (a *ActivationFile) Path() string { return a.file.Path }

// Warnings say what the lock cannot promise.
func (a *ActivationFile) Warnings() []string {
	if a.DNS == nil {
		return nil
	}
	return []string{"a name in DNS is not a lock: it gives no fencing token, and two clusters may be active at a time " +
		"if resolvers " +
		"answer differently, such as from a cache. Take another lock if that does harm"}
}

// Place is where a path in the file leads: relative ones begin at the file.
func (a *ActivationFile) Place(name string) string { return a.file.Place(name) }

// Errorf returns an error at a path of the file.
func (a *ActivationFile) Errorf(path, fix, format string, args ...any) *config.Error {
	return a.file.Errorf(path, fix, format, args...)
}

// Digest changes with what the file says.
func (a *ActivationFile) Digest() string {
	text, err := json.Marshal(a.Activation)
	if err != nil {
		panic("writing the activation as JSON: " + err.Error()) // its values came from JSON: cannot happen
	}
	return string(text)
}

// Follows is the activation that the operator follows, by Activations; nil for none.
func (f *File) Follows() *ActivationFile { return f.follows }

// Activations returns the activations in the files that o names, and notes in operators which one they follow. The
// errors are those of files of kind Activation, and of operators whose activation is missing or has errors, which must
// not be run either: Operators reports the others.
func Activations(o Options, operators []*File) ([]*ActivationFile, config.Errors) {
	var list []*ActivationFile
	sources, _ := find(o.Files)
	var errs config.Errors
	for _, s := range sources {
		data, err := s.read(o.Stdin)
		if err != nil {
			continue // Operators reports it
		}
		f := &File{Document: document.ParseDocument(s.path, data)}
		if f.Values["apiVersion"] != config.APIVersion || f.Values["kind"] != lock.ActivationKind {
			continue
		}
		a, found := readActivation(f, o)
		errs, list = append(errs, found...), append(list, a)
	}
	byName := map[string]*ActivationFile{}
	for _, a := range list {
		if other := byName[a.Metadata.Name]; other != nil {
			twice := a.Errorf("metadata.name", "rename one of them", "%s is an activation of that name too", other.Path())
			a.file.problems, errs = append(a.file.problems, twice), append(errs, twice)
		}
		byName[a.Metadata.Name] = a
	}
	for _, f := range operators {
		a, err := activationAmong(f, list)
		if err != nil {
			f.problems, errs = append(f.problems, err), append(errs, err)
			continue
		}
		if a == nil {
			continue
		}
		if a.DNS != nil && f.Conventions.ActivationToken != nil {
			none := f.Errorf("conventions.activationToken", "remove it, or take a lock that gives a token",
				"activation %s is a name in DNS, "+
					"which gives no token", a.Metadata.Name)
			f.problems, errs = append(f.problems, none), append(errs, none)
		}
		if f.follows = a; !a.file.Valid() {
			broken := f.Errorf("activation", "fix "+a.Path(), "the activation that the operator follows has errors")
			f.problems, errs = append(f.problems, broken), append(errs, broken)
		}
	}
	return list, errs.Sort()
}

// activationAmong is the activation that an operator follows; nil for none.
func activationAmong(f *File, list []*ActivationFile) (*ActivationFile, *config.Error) {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = a.Metadata.Name
	}
	at := slices.Index(names, f.Activation)
	switch {
	case f.Reported("activation"), f.Activation == config.EveryCluster:
		return nil, nil
	case at >= 0:
		return list[at], nil
	case f.Activation != "" && len(list) == 0:
		return nil, f.Errorf("activation", "name the file of kind Activation with -c, too", "no activation is loaded")
	case f.Activation != "":
		fix := document.FixForUnknown(f.Activation, names, "loaded are")
		return nil, f.Errorf("activation", fix, "no activation %q is loaded", document.Clip(f.Activation))
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return nil, f.Errorf("activation", "name one of "+strings.Join(names, ", ")+", or write "+config.EveryCluster+
			" for an operator that writes in every cluster", "required value is missing, since several activations are loaded")
	case f.Conventions.ActivationToken != nil:
		return nil, f.Errorf("conventions.activationToken", "name a file of kind Activation with -c, or remove the key",
			"the operator follows no activation, which gives the token")
	}
	return nil, nil
}

// Read returns the value of a secret; "" for none.
func (a *ActivationFile) Read(at string, s *lock.ActivationSecret) (string, error) {
	switch {
	case s == nil:
		return "", nil
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", a.Errorf(at+".env", "set it", "environment variable %s is not set", s.Env)
		}
		return value, nil
	}
	data, err := readFile(a.Place(s.File))
	if err != nil {
		return "", a.Errorf(at+".file", "check the name and the permissions", "%s cannot be read: %s",
			a.Place(s.File), reason(err))
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

func readActivation(f *File, o Options) (*ActivationFile, config.Errors) {
	a := &ActivationFile{file: f}
	a.LeaseDuration, a.RenewDeadline, a.RetryPeriod = common.Duration(15*time.Second), common.Duration(10*time.Second),
		common.Duration(2*time.Second)
	errs, _ := decode.Decode(f.Document, &a.Activation)
	fill(&a.OnLost, lock.OnLostStandby)
	if a.DNS != nil && !f.Given("dns", "interval") {
		a.DNS.Interval = a.RetryPeriod
	}
	if a.DynamoDB != nil {
		fill(&a.DynamoDB.PartitionKey, "key")
	}
	if o.Identity != "" {
		a.Identity = o.Identity
	}
	f.problems = slices.Concat(errs, validate.CheckActivation(f.Document, &a.Activation, o.Anybody))
	return a, f.problems
}
