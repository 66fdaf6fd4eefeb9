import { MnemologError, mnemolog } from "./index.js";

const memory = mnemolog({ url: process.env.MNEMOLOG_URL ?? "http://127.0.0.1:8464" });
const user_id = "typescript";

const turn = await memory.POST("/v1/turns", {
  params: { query: { wait: 30 } },
  body: { messages: "I live in Bern.", user_id, speaker: "Alice" },
});
console.log(turn.data?.status);

const found = await memory.POST("/v1/search", { body: { query: "Where does Alice live?", user_id } });
console.log(found.data?.hits[0]?.fact.text);

try {
  await memory.GET("/v1/facts/{fact_id}", { params: { path: { fact_id: "00000000" }, query: { user_id } } });
} catch (error) {
  if (error instanceof MnemologError) console.log(error.status, error.message);
}
