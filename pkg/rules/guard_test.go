package rules

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/corollary-dev/corollary/internal/must"
)

func upstreamScope(t *testing.T) *scope {
	t.Helper()
	env := must.Get(NewEnv(EnvOptions{})).In(t)
	s := must.Get(env.scope(Upstream, "")).In(t)
	return s
}

// hostile is an object that was written to hang or crash the process.
var hostile = func() map[string]any {
	many := func(n int, v any) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	numbers := make([]any, 50_000)
	for i := range numbers {
		numbers[i] = int64(i * 7919 % len(numbers))
	}
	var deep any = "x"
	for range 5000 {
		deep = []any{deep}
	}
	return map[string]any{
		"texts": []any{"", "a", strings.Repeat("a", 1<<19), strings.Repeat("a", 1<<18) + "b", strings.Repeat("%s", 1<<17), "%.999999999f",
			"%.9999999999999999999d", strings.Repeat("9", 1<<19),
			"((a{100}){100}){10}", "(a*)*(b|c*)*$", strings.Repeat(`\pL`, 1000), strings.Repeat("(a*)*", 1000), strings.Repeat("\xff", 1<<18),
			strings.Repeat("é", 1<<18), "1e2147483647",
			strings.Repeat("1.", 1<<18), "http://" + strings.Repeat("%41", 1<<17)},
		"ints":    []any{int64(0), int64(1), int64(-1), int64(math.MinInt64), int64(math.MaxInt64), int64(1e18), int64(1 << 20)},
		"doubles": []any{0.5, 1e308, -1e308, math.NaN(), math.Inf(1)},
		"lists": []any{[]any{}, many(100_000, "a"), many(1000, strings.Repeat("b", 1<<19)), numbers, deep, many(1000, many(1000, int64(1))),
			many(100_000, int64(1))},
	}
}()

// argument returns an expression for a value of a type; "" if no value of an object has it.
func argument(t *types.Type, random *rand.Rand) string {
	pick := func(list string) string {
		return fmt.Sprintf("self.%s[%d]", list, random.IntN(len(hostile[list].([]any))))
	}
	switch t.Kind() {
	case types.StringKind:
		return pick("texts")
	case types.IntKind:
		return pick("ints")
	case types.DoubleKind:
		return pick("doubles")
	case types.ListKind:
		return pick("lists")
	case types.BytesKind:
		return "bytes(" + pick("texts") + ")"
	case types.BoolKind:
		return "true"
	case types.MapKind:
		return "self"
	case types.DynKind, types.TypeParamKind, types.AnyKind:
		return []string{pick("texts"), pick("ints"), pick("lists"), "self"}[random.IntN(4)]
	case types.DurationKind:
		return "duration('1s')"
	case types.TimestampKind:
		return "timestamp('2026-11-20T00:00:00Z')"
	}
	switch t.TypeName() {
	case "kubernetes.Quantity":
		return "quantity(" + pick("texts") + ")"
	case "kubernetes.URL":
		return "url(" + pick("texts") + ")"
	case "kubernetes.Semver":
		return "semver('1.0.0')"
	case "net.IP":
		return "ip('::1')"
	case "net.CIDR":
		return "cidr('::1/64')"
	case "kubernetes.NamedFormat":
		return "format.uri().value()"
	}
	return ""
}

// bounded evaluates an expression and checks the limits of the evaluation.
func bounded(t *testing.T, env *Env, expr string) error {
	t.Helper()
	p, err := env.Any(expr, Upstream, "")
	if err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err = p.Eval(Vars{Self: hostile}, nil)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	var failed *EvalError
	if errors.As(err, &failed) && len(failed.Problem) > 1100 {
		t.Errorf("%s: a problem of %d bytes", expr, len(failed.Problem))
	}
	limit := uint64(128 << 20)
	if p.loops {
		limit = 4 << 30 // garbage of a loop
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > limit {
		t.Errorf("%s allocates %d MiB (%.200v)", expr, made>>20, err)
	}
	if took > 2*time.Minute {
		t.Errorf("%s takes %s (%.200v)", expr, took, err)
	}
	return err
}

// TestHostileArguments calls every function of Kubernetes' CEL.
func TestHostileArguments(t *testing.T) {
	const each = 8
	env := must.Get(NewEnv(EnvOptions{})).In(t)
	all := upstreamScope(t).env.Functions()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	called := 0
	for _, name := range names {
		if strings.ContainsAny(name, "_@!") {
			continue // an operator
		}
		random := rand.New(rand.NewPCG(1, 2))
		for _, o := range all[name].OverloadDecls() {
			for range each {
				args := make([]string, len(o.ArgTypes()))
				for i, arg := range o.ArgTypes() {
					args[i] = argument(arg, random)
				}
				if slices.Contains(args, "") {
					break
				}
				expr := name + "(" + strings.Join(args, ", ") + ")"
				if o.IsMemberFunction() {
					expr = args[0] + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
				}
				var wrong *CompileError
				if !errors.As(bounded(t, env, expr), &wrong) {
					called++
				}
			}
		}
	}
	if called < 500 {
		t.Errorf("only %d calls were made", called)
	}
}

// hostileExpressions are rules of an innocent author, and whether they have a result for the hostile object.
var hostileExpressions = map[string]bool{
	"self.texts[2].replace('', self.texts[2])":                                                    false,
	"self.lists[2].join(self.texts[2])":                                                           false,
	"self.lists[1].map(x, self.texts[2]).join()":                                                  false,
	"self.lists[1].map(x, self.texts[2])":                                                         false,
	"self.lists[1].map(x, 'ab'.replace('', self.texts[3])).size()":                                false,
	"self.texts[5].format([1.5])":                                                                 false,
	"self.texts[4].format(self.lists[2])":                                                         false,
	"quantity(self.texts[7]).isGreaterThan(quantity('1'))":                                        false,
	"self.texts[2].indexOf(self.texts[3]) > 0":                                                    false,
	"self.texts[2].matches(self.texts[11])":                                                       false,
	"self.texts[2].matches('^[a-z]+$')":                                                           true,
	"self.texts[2].find(self.texts[9])":                                                           true,
	"sets.contains(self.lists[3], self.lists[3])":                                                 false,
	"self.lists[3].distinct().size()":                                                             false,
	"self.lists[3].sort()[0]":                                                                     true,
	"lists.range(self.ints[4])":                                                                   false,
	"self.lists[2].map(x, x.split(''))":                                                           false,
	"self.lists[1].map(x, self.lists[1].reverse())":                                               false,
	"self.lists[1].map(x, self.lists[1].slice(0, 100000))":                                        false,
	"self.lists[1].map(x, self.lists[5].flatten())":                                               false,
	"self.lists[1].map(x, self.lists[3].sort())":                                                  false,
	"self.lists[1].map(x, strings.quote(self.texts[2]))":                                          false,
	"self.texts[2].findAll('').size()":                                                            false,
	"self.texts[2].lastIndexOf(self.texts[3]) > 0":                                                false,
	"sets.equivalent(self.lists[3], self.lists[3])":                                               false,
	"sets.intersects(self.lists[3], self.lists[6])":                                               false,
	"isQuantity(self.texts[7])":                                                                   false,
	"self.lists[4]":                                                                               true,
	"self.lists[3].all(x, x in self.lists[3])":                                                    false,
	"self.lists[1].exists(x, self.lists[1].exists(y, self.lists[1].exists(z, x + y + z == 'b')))": false,
	"'a,b'.split(',').join('-') + 'c'.replace('c', 'd')":                                          true,
	"'%s is %d'.format(['x', 1])":                                                                 true,
}

func TestHostileExpressions(t *testing.T) {
	env := must.Get(NewEnv(EnvOptions{})).In(t)
	for expr, want := range hostileExpressions {
		if err := bounded(t, env, expr); want != (err == nil) {
			t.Errorf("%s: %.300v", expr, err)
		}
	}
}

// FuzzExpressions looks for an expression that exceeds the limits.
func FuzzExpressions(f *testing.F) {
	env := must.Get(NewEnv(EnvOptions{})).In(f)
	for expr := range hostileExpressions {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		_ = bounded(t, env, expr)
	})
}
