//go:build controlplane && locks

package clusters

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// dynalite is where make installs the service.
const dynalite = "../../bin/dynalite/node_modules/dynalite/cli.js"

// region is what the service is said to be in; it has none.
const region = "eu-west-1"

// dynamoService is a table of one service.
type dynamoService struct{ *server }

// Config implements service.
func (s *dynamoService) Config(_ *testing.T, addr, name string) string {
	return "dynamodb: {table: locks, key: " + name + ", region: " + region + ", endpoint: \"http://" + addr + "\"}\n"
}

func startDynamoDB(t *testing.T) *dynamoService {
	t.Helper()
	if _, err := os.Stat(dynalite); err != nil {
		t.Fatalf("dynalite is missing: run make locks-test, which installs it: %v", err)
	}
	addr, dir := testkit.FreeAddress(t), t.TempDir()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &dynamoService{startServer(t, addr, func() *exec.Cmd {
		return exec.Command("node", dynalite, "--host", host, "--port", port, "--path", dir, "--createTableMs", "0")
	})}
	_, err = s.client().CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("locks"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the table is not ready", func() bool {
		d, err := s.client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")})
		return err == nil && d.Table.TableStatus == types.TableStatusActive
	})
	return s
}

func (s *dynamoService) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: region, BaseEndpoint: aws.String("http://" + s.addr),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
}

func TestDynamoDB(t *testing.T) {
	t.Parallel()
	chaos(t, startDynamoDB(t))
}
