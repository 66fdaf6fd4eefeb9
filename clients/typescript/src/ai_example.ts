import { generateText, simulateReadableStream, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { remembering } from "./ai.js";
import { mnemolog } from "./index.js";

const memory = mnemolog({ url: process.env.MNEMOLOG_URL ?? "http://127.0.0.1:8464" });
const user_id = "ai-sdk";

// It repeats its system message; take a model of a provider, such as openai("gpt-5-mini").
type Call = Parameters<MockLanguageModelV3["doGenerate"]>[0];
const known = ({ prompt }: Call) => prompt.flatMap(({ role, content }) => (role === "system" ? [content] : [])).join(" ");
const finishReason = { unified: "stop", raw: "stop" } as const;
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const repeating = new MockLanguageModelV3({
  doGenerate: async (call) => ({ content: [{ type: "text", text: known(call) }], finishReason, usage, warnings: [] }),
  doStream: async (call) => ({
    stream: simulateReadableStream({
      chunks: [
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: known(call) },
        { type: "text-end", id: "1" },
        { type: "finish", finishReason, usage },
      ],
    }),
  }),
});

const model = wrapLanguageModel({
  model: repeating,
  middleware: remembering({ memory, user_id, speaker: "Alice" }),
});
await generateText({ model, prompt: "I live in Bern." });
// The turns of a user are decided in their order: where this one has ended, so has that of the model.
await memory.POST("/v1/turns", { params: { query: { wait: 30 } }, body: { user_id, messages: "Hello." } });
const { textStream } = streamText({ model, prompt: "Where do I live?" });
for await (const text of textStream) console.log(text.includes("Alice lives in Bern.") ? "remembered" : text);
await memory.POST("/v1/turns", { params: { query: { wait: 30 } }, body: { user_id, messages: "Bye." } });
const facts = await memory.GET("/v1/facts", { params: { query: { user_id } } });
console.log(facts.data?.items.map(({ text, mention_count }) => `${text} ${mention_count}`).join("; "));
