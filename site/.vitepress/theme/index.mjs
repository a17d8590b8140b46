// Without the theme's fonts: the system's are there already.
import theme from "vitepress/theme-without-fonts";
import "./style.css";

export default theme;
