import { inner } from "./inner"
export default inner
