import createClient, { type Client, type ClientOptions } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, paths };
export type Problem = components["schemas"]["Problem"];

/** What the server refused, with its status; `problem.detail` says what to do. */
export class MnemologError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.detail);
    this.name = "MnemologError";
  }
}

export interface Options extends Omit<ClientOptions, "baseUrl"> {
  /** The address of `mnemolog serve`, such as `http://127.0.0.1:8464`. */
  url: string;
  /** A key (`mnemolog keys create NAME`) or a token; none for a server of this machine without keys. */
  key?: string;
}

/** A client with a method for each HTTP method, typed by path: `memory.POST("/v1/search", { body: ... })`.
 *
 * Rejects with `MnemologError` where the server answers with a problem.
 */
export function mnemolog({ url, key, ...options }: Options): Client<paths, "application/json"> {
  const memory = createClient<paths, "application/json">({ ...options, baseUrl: url });
  memory.use({
    onRequest({ request }) {
      if (key !== undefined) request.headers.set("Authorization", `Bearer ${key}`);
      return request;
    },
    async onResponse({ response }) {
      if (response.headers.get("Content-Type")?.startsWith("application/problem+json")) {
        throw new MnemologError(response.status, (await response.json()) as Problem);
      }
    },
  });
  return memory;
}
