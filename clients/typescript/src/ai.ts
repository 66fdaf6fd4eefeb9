import type { LanguageModelMiddleware } from "ai";

import type { components, mnemolog } from "./index.js";

type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Content = { type: string; text?: string };

export interface Remembering {
  memory: ReturnType<typeof mnemolog>;
  user_id: string;
  agent_id?: string;
  app_id?: string;
  run_id?: string;
  /** The name of the user, for facts such as "Alice lives in Bern.". */
  speaker?: string;
  /** The most that the memory takes of a prompt, 800 unless given. */
  budget_tokens?: number;
}

/** Middleware of the AI SDK: puts what is known before the prompt, and publishes each turn that was answered.
 *
 * `wrapLanguageModel({ model, middleware: remembering({ memory, user_id: "alice" }) })`
 *
 * A step that ends with calls of tools is no answer: the turn is published at the last one. Rejects with
 * `MnemologError` where the memory is away.
 */
export function remembering({ memory, speaker, budget_tokens, ...whose }: Remembering): LanguageModelMiddleware {
  const recalled = new WeakMap<Params, string[]>();

  async function publish(params: Params, answer: Content[]): Promise<void> {
    const said = lastMessages(params);
    if (said === "" || answer.some(({ type }) => type === "tool-call")) return;
    const messages = [{ role: "user", content: said }];
    const text = textOf(answer);
    if (text !== "") messages.push({ role: "assistant", content: text });
    const turn: components["schemas"]["TurnBody"] = { ...whose, messages, recalled: recalled.get(params) ?? [] };
    await memory.POST("/v1/turns", { body: speaker === undefined ? turn : { ...turn, speaker } });
  }

  return {
    specificationVersion: "v3",

    async transformParams({ params }) {
      const asked = { ...whose, query: lastMessages(params) || null };
      const body = budget_tokens === undefined ? asked : { ...asked, budget_tokens };
      const known = (await memory.POST("/v1/context", { body })).data;
      const prompt = [...params.prompt];
      if (known?.text) prompt.unshift({ role: "system", content: known.text });
      const changed = { ...params, prompt };
      recalled.set(changed, known?.recalled ?? []);
      return changed;
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      await publish(params, result.content);
      return result;
    },

    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      const answer: Content[] = [];
      const published: typeof stream = stream.pipeThrough(
        new TransformStream({
          transform(part, controller) {
            if (part.type === "text-delta") answer.push({ type: "text", text: part.delta });
            if (part.type === "tool-call") answer.push(part);
            controller.enqueue(part);
          },
          flush: () => publish(params, answer),
        }),
      );
      return { stream: published, ...rest };
    },
  };
}

/** The texts of the user's last messages; behind them are answers and results of tools of the same turn. */
function lastMessages({ prompt }: Params): string {
  const last = prompt.map(({ role }) => role).lastIndexOf("user");
  let first = last;
  while (prompt[first - 1]?.role === "user") first -= 1;
  return prompt
    .slice(Math.max(first, 0), last + 1)
    .map(({ content }) => (typeof content === "string" ? content : textOf(content)))
    .join("\n");
}

function textOf(parts: Content[]): string {
  return parts.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("");
}
