import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

// node dist/mcp_example.js http://127.0.0.1:8464/mcp?user_id=alice
// node dist/mcp_example.js mnemolog mcp --user alice
const [first = "http://127.0.0.1:8464/mcp?user_id=alice", ...rest] = process.argv.slice(2);
const transport = first.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(first))
  : new StdioClientTransport({ command: first, args: rest, env: process.env as Record<string, string> });
const assistant = new Client({ name: "example", version: "1" });
assistant.onerror = (error) => console.log(error.message); // such as a line of stdout that is no message
await assistant.connect(transport);

console.log((await assistant.listTools()).tools.map(({ name }) => name).join(" "));
for (const [name, args] of [
  ["add_memory", { text: "I live in Porto." }],
  ["search_memories", { query: "Where do I live?" }],
  ["search_memories", {}],
] as const) {
  const { structuredContent, content } = await assistant.callTool({ name, arguments: args });
  console.log(JSON.stringify(structuredContent ?? content));
}
await assistant.close();
