(function(){'use strict';
var box=document.getElementById('parts'),maps=document.getElementById('maps');
var all=[].slice.call(document.querySelectorAll('article'));
if(!all.length)return;box.className='alone';maps.parentNode.insertBefore(box,maps.nextSibling);
var first=all.filter(function(a){return a.hasAttribute('data-first')})[0]||all[0];
function mark(nodes,on){[].forEach.call(nodes,function(n){
if(on)n.setAttribute('aria-current','true');else n.removeAttribute('aria-current')})}
function show(){var id=location.hash.slice(1),one=all.filter(function(a){return a.id===id})[0]||first;
mark(document.querySelectorAll('[aria-current]'),false);mark([one],true);
mark(document.querySelectorAll('a[href="#'+one.id+'"]'),true);
if(one.id===id){one.scrollIntoView();one.focus({preventScroll:true})}}
all.forEach(function(a){var pre=a.querySelector('pre'),b=document.createElement('button');
b.type='button';b.textContent='Copy the policy';
b.addEventListener('click',function(){
var range=document.createRange(),s=getSelection();range.selectNodeContents(pre);s.removeAllRanges();
s.addRange(range);var done=function(){b.textContent='Copied'};
if(navigator.clipboard)navigator.clipboard.writeText(pre.textContent).then(done,function(){});
else if(document.execCommand('copy'))done()});
pre.parentNode.insertBefore(b,pre)});
window.addEventListener('hashchange',show);show()})()
