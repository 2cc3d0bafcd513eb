package cost

import (
	"errors"
	"math/bits"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// CEL computes the cost of a call after the call. If a call can make much more than its arguments, or needs more than
// one pass over them, its cost is computed from the arguments and checked before the call.

// price returns the cost of a call, in units of CEL: about a microsecond, or ten allocated bytes.
type price func(args []ref.Val) int

// prices are the prices of functions that Kubernetes' estimator does not know, or lets make much, by themselves or in a
// loop: TestHostileExpressions has expressions for most. All others take time in proportion to their arguments.
var prices = map[string]price{
	"replace": replacePrice, "join": joinPrice, "split": splitPrice, "format": formatPrice, "strings.quote": quotePrice,
	"matches": regexPrice, "find": regexPrice, "findAll": findAllPrice,
	"indexOf": searchPrice, "lastIndexOf": searchPrice,
	"quantity": squarePrice, "isQuantity": squarePrice,
	"sets.contains": productPrice, "sets.intersects": productPrice, "sets.equivalent": productPrice,
	"distinct": squarePrice, "sort": sortPrice, "@sortByAssociatedKeys": sortPrice, "flatten": flattenPrice,
	"lists.range": rangePrice, "reverse": listPrice, "slice": listPrice,
	"optional.unwrap": listPrice, "unwrapOpt": listPrice,
	"cel.@mapInsert": listPrice,
}

// cheap are the functions that read each part of their arguments at most once, and whose result is not larger.
var cheap = strings.Fields(`!_ -_ @in @not_strictly_false _!=_ _%_ _&&_ _*_ _+_ _-_ _/_ _<=_ _<_ _==_ _>=_ _>_ _?._ _?_:_ _[?_] _[_]
	__not_strictly_false__ _in_ _||_ in bool bytes double duration dyn int string timestamp type uint size
	contains startsWith endsWith includes isSorted max min sum first last
	lowerAscii upperAscii trim substring charAt validate semver isSemver url isURL
	optional.none optional.of optional.ofNonZeroValue hasValue or orValue value
	getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds
	getEscapedPath getHost getHostname getPort getQuery getScheme
	add sub sign compareTo isGreaterThan isLessThan isInteger asInteger asApproximateFloat major minor patch
	cidr ip isIP isCIDR ip.isCanonical family masked prefixLength containsIP containsCIDR
	isGlobalUnicast isLinkLocalMulticast isLinkLocalUnicast isLoopback isUnspecified
	allowed check error errored fieldSelector group labelSelector name namespace path reason resource serviceAccount
	subresource format.byte format.date format.datetime format.dns1035Label format.dns1035LabelPrefix
	format.dns1123Label format.dns1123LabelPrefix format.dns1123Subdomain format.dns1123SubdomainPrefix format.labelValue format.named format.qualifiedName format.uri format.uuid`)

// ErrTooExpensive is the error of a call whose price is over the limit: it is not made.
var ErrTooExpensive = errors.New("a call would cost more than the limit")

// Guard makes a program check the price of a call before the call, and counts it as its cost.
func Guard(env *cel.Env) ([]cel.ProgramOption, error) {
	implementations := map[string][]*functions.Overload{}
	for name := range prices {
		if f, ok := env.Functions()[name]; ok {
			overloads, err := f.Bindings()
			if err != nil {
				return nil, err
			}
			implementations[name] = overloads
		}
	}
	decorate := func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok {
			return i, nil
		}
		impl := implementationOf(implementations[call.Function()], call)
		if impl == nil {
			return i, nil
		}
		price := prices[call.Function()]
		return interpreter.NewCall(call.ID(), guarded(call.Function()), call.OverloadID(), call.Args(),
			func(args ...ref.Val) ref.Val {
				if price(args) > PerCall {
					return types.WrapErr(ErrTooExpensive)
				}
				return impl(args...)
			}), nil
	}
	return []cel.ProgramOption{cel.CustomDecoratorV2(decorate), cel.CostTracking(&estimator{})}, nil
}

// guarded is the name of a function whose price is checked. Kubernetes' library takes a call of findAll with a constant
// expression away after us, by its name, and what it puts there makes all matches.
func guarded(function string) string {
	if function == "findAll" {
		return findAllGuarded
	}
	return function
}

const findAllGuarded = "findAll, guarded"

// implementationOf returns the function of a call: its overload, or a dispatcher that chooses one by the values.
func implementationOf(overloads []*functions.Overload, call interpreter.InterpretableCall) functions.FunctionOp {
	for _, id := range []string{call.OverloadID(), call.Function()} {
		for _, o := range overloads {
			if o.Operator != id || o.NonStrict {
				continue
			}
			switch n := len(call.Args()); {
			case n == 1 && o.Unary != nil:
				return func(args ...ref.Val) ref.Val { return o.Unary(args[0]) }
			case n == 2 && o.Binary != nil:
				return func(args ...ref.Val) ref.Val { return o.Binary(args[0], args[1]) }
			case o.Function != nil:
				return o.Function
			}
		}
	}
	return nil
}

// estimator returns the larger of Kubernetes' cost and the price.
type estimator struct{ library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (e *estimator) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if function == findAllGuarded {
		function = "findAll"
	}
	cost := e.CostEstimator.CallCost(function, overload, args, result)
	price, ok := prices[function]
	if !ok {
		return cost
	}
	n := uint64(price(args))
	if cost != nil {
		n = max(n, *cost)
	}
	return &n
}

// most limits sizes, so that their products do not overflow.
const most = 1 << 40

func clamp(n int) int { return max(0, min(n, most)) }

// length returns the length of a text or a list.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return clamp(int(n))
		}
	}
	return 0
}

func quotePrice(args []ref.Val) int { return length(args[0]) / 10 }

func listPrice(args []ref.Val) int { return length(args[0]) / 4 }

// squarePrice: each part is compared or multiplied with each other part, about a hundred at once.
func squarePrice(args []ref.Val) int {
	n := length(args[0])
	return n/10 + clamp(n*n)/100
}

func productPrice(args []ref.Val) int { return 2 * (length(args[0])*length(args[1])/10 + 1) }

func sortPrice(args []ref.Val) int {
	n := length(args[0])
	return n * (1 + bits.Len(uint(n))) / 4
}

func rangePrice(args []ref.Val) int {
	n, _ := args[0].(types.Int)
	return clamp(int(min(n, most))) / 4
}

// flattenPrice: nested lists count, down to the depth to which they are flattened.
func flattenPrice(args []ref.Val) int {
	depth := 1
	if len(args) > 1 {
		n, _ := args[1].(types.Int)
		depth = int(min(n, 1000))
	}
	total := 0
	var walk func(v ref.Val, depth int)
	walk = func(v ref.Val, depth int) {
		list, ok := v.(traits.Lister)
		if !ok || depth < 0 || total > PerCall*4 {
			return
		}
		total += length(list)
		for it := list.Iterator(); it.HasNext() == types.True; {
			walk(it.Next(), depth-1)
		}
	}
	walk(args[0], depth)
	return total
}

func text(args []ref.Val, i int) string {
	if i < len(args) {
		if s, ok := args[i].(types.String); ok {
			return string(s)
		}
	}
	return ""
}

// replacePrice: the replacements count.
func replacePrice(args []ref.Val) int {
	from, old, to := text(args, 0), text(args, 1), text(args, 2)
	return (len(from) + clamp(strings.Count(from, old)*len(to))) / 10
}

func joinPrice(args []ref.Val) int {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	total := clamp(length(list) * (16 + len(text(args, 1))))
	for it := list.Iterator(); it.HasNext() == types.True && total < PerCall*10; {
		total += length(it.Next())
	}
	return total / 10
}

func splitPrice(args []ref.Val) int {
	return len(text(args, 0))/10 + 6*strings.Count(text(args, 0), text(args, 1))
}

// searchPrice: for texts, each position is compared byte by byte.
func searchPrice(args []ref.Val) int {
	if _, ok := args[0].(types.String); !ok {
		return length(args[0]) / 4
	}
	return length(args[0])/10 + clamp(length(args[0])*length(args[1]))/500
}

// regexPrice: the expression may come from an object. Repetitions multiply the size of the program, so an expression
// with a large count is only allowed for a short text.
func regexPrice(args []ref.Val) int {
	pattern := text(args, 1)
	return len(pattern)*2 + clamp((len(text(args, 0))+100)*programSize(pattern))/50
}

// findAllPrice: an expression that matches the empty text matches at each position.
func findAllPrice(args []ref.Val) int {
	return regexPrice(args) + 4*length(args[0])
}
